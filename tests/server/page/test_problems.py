"""What the page says when the server refuses or is lost."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect
from tests.server.page.browser import visit
from tests.server.page.scripted_server import (
    MUSEUM_TEXT,
    Script,
    refuse,
)

pytestmark = pytest.mark.browser


def test_a_server_that_wants_a_key_is_given_one_and_only_this_session_keeps_it(
    browser: Browser, url: str, script: Script
) -> None:
    script.key = "secret"
    with visit(browser, url, refusals=("401",)) as here:
        expect(here.page.get_by_role("alert")).to_have_text("This server needs an API key.")
        expect(here.page.get_by_label("API key")).to_be_focused()
        here.page.keyboard.type("wrong")
        here.page.keyboard.press("Enter")
        expect(here.page.get_by_role("alert")).to_have_text("The server does not accept this API key.")
        here.page.get_by_label("API key").fill("secret")
        here.page.get_by_role("button", name="Save").click()
        here.ask("When?")
        here.finish()
        assert here.answer() == MUSEUM_TEXT
        assert "secret" in here.page.evaluate("Object.values(sessionStorage)")
        assert "secret" not in str(here.page.evaluate("[document.cookie, {...localStorage}, location.href]"))


def test_a_server_that_is_loading_is_met_once_it_has(browser: Browser, url: str, script: Script) -> None:
    script.loading = True
    with visit(browser, url, refusals=("503",)) as here:
        expect(here.page.locator("#model")).to_have_text("loading the model")
        script.loading = False
        expect(here.page.locator("#model")).to_have_text("scripted")


def test_a_full_server_is_asked_again_when_it_allows(browser: Browser, url: str, script: Script) -> None:
    script.reply = lambda request: refuse(429, "full", retry_after="2")
    with visit(browser, url, refusals=("429",)) as here:
        here.watch_buttons()
        here.ask("When?")
        expect(here.page.get_by_role("alert")).to_contain_text("The server is full")
        here.wait_for_button("Try again in 2 s, disabled")
        script.reply = lambda request: None
        here.page.get_by_role("button", name="Try again", exact=True).click()
        here.finish()
        assert here.answer() == MUSEUM_TEXT


@pytest.mark.parametrize(
    ("status", "message", "sentence"),
    [
        (503, "the server is shutting down", "the server is shutting down."),
        (503, "", "The server cannot take questions at the moment."),
        (400, "the prompt has 900 tokens, the limit is 512", "the prompt has 900 tokens, the limit is 512."),
        (500, "", "The server refused with status 500."),
    ],
)
def test_a_refusal_is_one_sentence_and_a_button(
    browser: Browser, url: str, script: Script, status: int, message: str, sentence: str
) -> None:
    script.reply = lambda request: refuse(status, message)
    with visit(browser, url, refusals=(str(status),)) as here:
        here.ask("When?")
        expect(here.page.get_by_role("alert").locator("p")).to_have_text(sentence)
        expect(here.page.get_by_role("button", name="Try again")).to_be_enabled()


def test_a_lost_connection_keeps_what_came_and_offers_to_try_again(browser: Browser, url: str, script: Script) -> None:
    script.pause_s = 0.1
    script.broken_after = 3
    with visit(browser, url, refusals=("ERR_INCOMPLETE_CHUNKED_ENCODING",)) as here:
        here.ask("When?")
        expect(here.page.get_by_role("alert")).to_contain_text(
            "The connection was lost before the answer was complete."
        )
        assert here.answer() == "The museum is open from Tuesday"
        script.broken_after = None
        here.page.get_by_role("button", name="Try again").click()
        here.finish()
        assert here.answer() == MUSEUM_TEXT
