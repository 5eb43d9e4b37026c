"""The site is built without a warning, asks nobody else for anything, and can be read on a desk and on a phone."""

from __future__ import annotations

import functools
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from tests.docs.snippets import ROOT
from tests.server.page.browser import DESK, PHONE, chromium, visit


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    words = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder)]
    built = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


@pytest.fixture(scope="module")
def url(site: Path) -> Iterator[str]:
    handler = functools.partial(QuietHandler, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


# Playwright keeps an event loop in this thread as long as its browser lives, and other tests need their own.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


def test_every_page_of_the_folder_is_built(site: Path) -> None:
    pages = {path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")}
    generated = {Path(f"{name}.html") for name in ("commands", "http", "changelog", "contributing")}
    assert {page for page in pages | generated if not (site / page).is_file()} == set()


def test_pages_load_nothing_from_elsewhere(site: Path) -> None:
    tags = r"<(?:script|img|iframe|link)\b[^>]*?\b(?:src|href)=\"?(https?:|//)[^>]*>"
    found = [match[0] for page in site.rglob("*.html") for match in re.finditer(tags, page.read_text(encoding="utf-8"))]
    assert [tag for tag in found if 'rel="canonical"' not in tag] == []


@pytest.mark.browser
@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_pages_fit_the_window_and_ask_no_other_host(
    browser: Browser, url: str, size: tuple[int, int], dark: bool
) -> None:
    for page in ("index.html", "how-it-works.html", "commands.html", "comparison.html", "es/first-run.html"):
        with visit(browser, f"{url}/{page}", size, dark=dark, touch=size == PHONE) as here:
            here.page.locator("h1").wait_for()
            content, window = here.width
            scheme = here.page.locator("body").get_attribute("data-md-color-scheme")
        assert (page, content) == (page, window)
        assert scheme == ("slate" if dark else "default")


@pytest.mark.browser
def test_the_search_finds_an_option_of_the_command_line(browser: Browser, url: str) -> None:
    with visit(browser, f"{url}/index.html") as here:
        box = here.page.get_by_role("textbox", name="Search")
        box.click()
        here.page.get_by_text("Type to start searching").wait_for()
        box.press_sequentially("lenience")
        found = here.page.locator(".md-search-result__link", has_text="Commands").first
        found.wait_for()
