"""The page's files: which there are, how they are sent, and that they stay within themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from borrador.server.page import load_page, page_routes

FILES = load_page()
TEXTS = {path: file.content.decode() for path, file in FILES.items()}

FORBIDDEN = (
    "innerHTML",
    "outerHTML",
    "insertAdjacentHTML",
    r"document\.write",
    r"\beval\(",
    "new Function",
    r"\bstyle=",
    r'\son\w+="',
    "<style",
    "javascript:",
)


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    with TestClient(Starlette(routes=page_routes())) as client:
        yield client


def test_the_page_and_its_parts_are_served_by_name() -> None:
    assert {"/", "/page/page.js", "/page/client.js", "/page/page.css", "/page/icon.svg"} <= set(FILES)


@pytest.mark.parametrize("path", FILES)
def test_every_file_is_sent_as_it_stands(client: TestClient, path: str) -> None:
    response = client.get(path)
    assert response.status_code == 200
    assert response.content == FILES[path].content


@pytest.mark.parametrize(
    ("path", "content_type"),
    [
        ("/", "text/html; charset=utf-8"),
        ("/page/page.js", "text/javascript; charset=utf-8"),
        ("/page/page.css", "text/css; charset=utf-8"),
        ("/page/icon.svg", "image/svg+xml"),
    ],
)
def test_files_have_the_type_that_browsers_insist_on(client: TestClient, path: str, content_type: str) -> None:
    assert client.get(path).headers["content-type"] == content_type


@pytest.mark.parametrize("path", FILES)
def test_every_file_forbids_all_but_the_servers_own(client: TestClient, path: str) -> None:
    headers = client.get(path).headers
    rules = dict(rule.split(" ", 1) for rule in headers["content-security-policy"].split("; "))
    assert rules["default-src"] == "'none'"
    assert {rules[f"{kind}-src"] for kind in ("script", "style", "connect", "img")} == {"'self'"}
    assert {rules[rule] for rule in ("base-uri", "form-action", "frame-ancestors", "trusted-types")} == {"'none'"}
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"


def test_a_browser_that_has_a_file_is_not_sent_it_again(client: TestClient) -> None:
    tag = client.get("/").headers["etag"]
    again = client.get("/", headers={"If-None-Match": tag})
    assert (again.status_code, again.content) == (304, b"")
    assert client.get("/", headers={"If-None-Match": '"another"'}).status_code == 200


@pytest.mark.parametrize(
    "path",
    ["/page/", "/page/index.html", "/page/../page.py", "/page/%2e%2e/page.py", "/page//etc/passwd", "/page/page.JS"],
)
def test_nothing_but_the_files_is_served(client: TestClient, path: str) -> None:
    assert client.get(path).status_code == 404


@pytest.mark.parametrize("path", FILES)
def test_only_reading_is_allowed(client: TestClient, path: str) -> None:
    assert client.post(path).status_code == 405
    assert client.head(path).content == b""


@pytest.mark.parametrize("theme", [0, 1])
@pytest.mark.parametrize("name", ["ink", "soft", "draft", "correction", "bonus", "grammar"])
def test_text_stands_out_from_the_paper_in_both_themes(name: str, theme: int) -> None:
    paper = _luminance(_colour("paper", theme))
    text = _luminance(_colour(name, theme))
    darker, lighter = sorted([paper, text])
    assert (lighter + 0.05) / (darker + 0.05) >= 4.5  # WCAG 2.2, level AA


def _colour(name: str, theme: int) -> str:
    found = re.search(rf"--{name}: light-dark\(#(\w+), #(\w+)\)", TEXTS["/page/base.css"])
    assert found is not None
    return found[theme + 1]


def _luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("path", FILES)
def test_no_file_names_another_host(path: str) -> None:
    names = re.findall(r"""(?:https?:)?//[\w.-]+\.\w+[^\s"']*""", re.sub(r"^\s*//.*$", "", TEXTS[path], flags=re.M))
    assert [name for name in names if name != "http://www.w3.org/2000/svg"] == []


@pytest.mark.parametrize("path", FILES)
def test_no_file_holds_code_or_style_in_markup_or_parses_text_as_markup(path: str) -> None:
    assert [text for text in FORBIDDEN if re.search(text, TEXTS[path])] == []
    assert all("src=" in tag for tag in re.findall(r"<script[^>]*>", TEXTS[path]))


@pytest.mark.parametrize("path", FILES)
def test_every_file_that_a_file_refers_to_is_there(path: str) -> None:
    named = re.findall(r"""(?:href|src)="(page/[^"]+)"|from "\./([^"]+)";""", TEXTS[path])
    assert {f"/{page}" if page else f"/page/{module}" for page, module in named} <= set(FILES)
