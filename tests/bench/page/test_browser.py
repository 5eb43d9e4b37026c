"""The page in a real browser, opened as a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from tests.bench.records import make_pair, make_record
from tests.server.page.browser import chromium, visit

from borrador.bench.page.render import render_page

pytestmark = pytest.mark.browser

TASKS = ("mt_bench", "translation", "summarization_of_very_long_documents", "<script>alert(1)</script>", "rag", "code")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    pairs = tuple(make_pair(f"{task}-{number}", task, 1 + number / 4) for task in TASKS for number in range(4))
    path: Path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(render_page(make_record(pairs)), "utf-8")
    return path.as_uri()


@pytest.mark.parametrize(("size", "dark"), [((375, 740), False), ((375, 740), True), ((1200, 800), False)])
def test_it_fits_every_window_and_asks_for_nothing(
    browser: Browser, url: str, size: tuple[int, int], dark: bool
) -> None:
    with visit(browser, url, size, dark=dark) as here:
        requests: list[str] = []
        here.page.on("request", lambda request: requests.append(request.url))
        here.page.reload()
        for summary in here.page.get_by_text("Numbers", exact=True).all():
            summary.click()
        assert requests == [url]
        width, window = here.width
        assert width <= window
        background = here.page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert background == ("rgb(19, 20, 22)" if dark else "rgb(252, 252, 251)")


def test_it_prints_on_paper_in_black_on_white_with_all_numbers(browser: Browser, url: str) -> None:
    with visit(browser, url, dark=True) as here:
        assert here.page.pdf(format="A4").startswith(b"%PDF")
        here.page.emulate_media(media="print", color_scheme="dark")
        assert here.page.evaluate("getComputedStyle(document.body).color") == "rgb(23, 25, 28)"
        cell = here.page.get_by_role("cell", name="18.0 ms")
        assert cell.bounding_box() is not None
