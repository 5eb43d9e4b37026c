"""A real browser for tests of the page, and what it must not do on any of them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from playwright.sync_api import Browser, ConsoleMessage, Locator, Page, expect, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
DESK = (1280, 860)
PHONE = (360, 740)
# Machines that test are busy machines.
PATIENCE_MS = 30_000
expect.set_options(timeout=PATIENCE_MS)


@contextmanager
def chromium() -> Iterator[Browser]:
    """The Chromium of this machine."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        raise RuntimeError("tests of the page need Chromium: apt-get install chromium, or leave out `-m browser`")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Visit:
    """The page as a person has it before them.

    Attributes:
        page: the browser's side of it.
        refusals: statuses that the test has the server answer with; the browser reports them as errors.
        errors: what the browser complained of besides.
        hosts: every host that was asked for something.
    """

    page: Page
    refusals: tuple[str, ...] = ()
    errors: list[str] = field(default_factory=list)
    hosts: set[str] = field(default_factory=set)

    def ask(self, question: str) -> None:
        self.page.get_by_label("Your question").fill(question)
        self.page.keyboard.press("Enter")

    def finish(self) -> None:
        """Wait until the answer is complete."""
        self.page.get_by_role("button", name="Regenerate").wait_for()

    def token(self, text: str) -> Locator:
        return self.page.locator(".token").filter(has_text=text).first

    def answer(self) -> str:
        """The last answer's text."""
        return self.page.locator(".answer-text").last.text_content() or ""

    def watch_buttons(self) -> None:
        """Remember from now on what buttons say, for `wait_for_button`."""
        self.page.evaluate(
            "() => { window.buttons = new Set(); const look = () => {"
            " for (const { textContent, disabled } of document.querySelectorAll('button'))"
            " buttons.add(textContent + (disabled ? ', disabled' : '')); };"
            " const kinds = { attributes: true, characterData: true, childList: true, subtree: true };"
            " new MutationObserver(look).observe(document.body, kinds); }"
        )

    def wait_for_button(self, text: str) -> None:
        """Wait until a button has said this, for a moment at least, since `watch_buttons`."""
        self.page.wait_for_function("(text) => buttons.has(text)", arg=text)

    @property
    def width(self) -> tuple[int, int]:
        """How wide the page is, and how wide the window."""
        found = self.page.evaluate(
            "[Math.max(...[...document.querySelectorAll('html, body, main')]"
            ".map(node => node.scrollWidth - node.clientWidth)), innerWidth]"
        )
        return found[0] + found[1], found[1]

    def note(self, message: ConsoleMessage) -> None:
        if message.type == "error" and not any(status in message.text for status in self.refusals):
            self.errors.append(message.text)


@contextmanager
def visit(
    browser: Browser,
    url: str,
    size: tuple[int, int] = DESK,
    *,
    dark: bool = False,
    touch: bool = False,
    password: str = "",
    refusals: tuple[str, ...] = (),
) -> Iterator[Visit]:
    """A visit in a browser that knows nothing yet. It must end without an error, and without another host asked.

    Args:
        browser: that is used.
        url: of the page.
        size: of its window.
        dark: what the system prefers.
        touch: it is a phone.
        password: that is entered where the browser itself asks for one.
        refusals: as in `Visit`.
    """
    width, height = size
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if dark else "light",
        has_touch=touch,
        is_mobile=touch,
        http_credentials={"username": "", "password": password} if password else None,
    )
    visited = Visit(context.new_page(), refusals)
    visited.page.set_default_timeout(PATIENCE_MS)
    visited.page.on("console", visited.note)
    visited.page.on("pageerror", lambda error: visited.errors.append(str(error)))
    visited.page.on("request", lambda request: visited.hosts.add(urlsplit(request.url).netloc))
    try:
        visited.page.goto(url)
        yield visited
    finally:
        context.close()
    assert visited.errors == []
    assert visited.hosts == {urlsplit(url).netloc}


def card(here: Visit) -> str:
    return " ".join(here.page.locator("#card").all_inner_texts()).replace("\n", " ")


def mark_of(here: Visit, text: str) -> tuple[str, str]:
    line, style, colour = here.token(text).evaluate(
        "(node) => { const style = getComputedStyle(node);"
        " return [style.textDecorationLine, style.textDecorationStyle, style.color]; }"
    )
    return ("none" if line == "none" else style), colour
