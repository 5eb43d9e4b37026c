"""The page on the server that it is part of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect
from tests.server.page.browser import Visit, card, visit
from tests.server.rig import Rig, serve
from tests.server.whole import whole
from tests.server.writing import oracle, writing_llm

import borrador
from borrador.server.config import STREAM_PACING, ServerConfig, StreamPacing
from borrador.server.page import page_routes

pytestmark = pytest.mark.browser

ANSWER = "Red, green and blue: 🟥 grün <b>한국</b>." + " And again, red, green and blue." * 400


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    """A server whose model answers `ANSWER`, drafted with every fourth token wrong."""
    llm = writing_llm(ANSWER, oracle(ANSWER.encode()), context_length=16384)
    with serve(llm, routes=page_routes()) as running:
        yield running


@pytest.fixture
def here(browser: Browser, rig: Rig) -> Iterator[Visit]:
    with visit(browser, rig.url) as here:
        yield here


def allow(here: Visit, tokens: int) -> None:
    here.page.get_by_role("button", name="Settings").click()
    here.page.get_by_label("Longest answer").fill(str(tokens))
    here.page.get_by_role("button", name="Save").click()


def test_an_answer_arrives_character_for_character_with_its_origins(here: Visit) -> None:
    expect(here.page.locator("#model")).to_have_text("tiny")
    allow(here, 120)
    here.ask("Colours?")
    here.finish()
    assert here.answer() == ANSWER.encode()[:120].decode()
    expect(here.page.locator(".facts")).to_contain_text("120 tokens")
    expect(here.page.locator(".facts")).to_contain_text("cut at the most tokens allowed")
    assert kinds(here) == ["plain", *["draft", "draft", "draft", "correction"] * 2]


def test_pointing_at_a_token_tells_what_the_target_thought(here: Visit) -> None:
    allow(here, 40)
    here.ask("Colours?")
    here.finish()
    here.token("e").hover()
    assert "drafted and accepted" in card(here)
    assert "Target 99 %" in card(here) or "Target 100 %" in card(here)
    assert "3 of 5 accepted" in card(here)


def test_stop_frees_the_servers_slot(browser: Browser) -> None:
    slow = writing_llm(ANSWER, context_length=16384, pass_s=0.05)
    with serve(slow, routes=page_routes()) as rig, visit(browser, rig.url) as here:
        allow(here, 12000)
        here.ask("Colours?")
        expect(here.token("R")).to_be_visible()
        here.page.get_by_role("button", name="Stop").click()
        here.finish()
        rig.settle()
        assert rig.outcomes[-1].reason == "cancelled"
        assert ANSWER.startswith(here.answer())


def test_without_drafting_the_answer_is_the_same_and_nothing_of_it_drafted(here: Visit) -> None:
    allow(here, 60)
    here.ask("Colours?")
    here.finish()
    drafted = here.answer()
    here.page.get_by_role("switch", name="Drafting").click()
    here.page.get_by_role("button", name="Regenerate").click()
    expect(here.page.locator(".facts")).to_contain_text("drafting off")
    here.finish()
    assert here.answer() == drafted
    assert here.page.locator(".token.draft, .token.correction, .token.bonus").count() == 0


def test_what_the_server_refuses_is_said_in_its_words(browser: Browser, rig: Rig) -> None:
    with visit(browser, rig.url, refusals=("400",)) as here:
        allow(here, 10)
        here.ask("x" * 17000)
        expect(here.page.get_by_role("alert")).to_contain_text("16384")
        expect(here.page.get_by_role("button", name="Try again")).to_be_enabled()


def test_a_server_with_a_key_lets_the_browser_ask_for_it_once(browser: Browser) -> None:
    config = ServerConfig(port=0, api_keys=("secret",))
    with whole(writing_llm("Red."), config) as server, visit(browser, server.url, password="secret") as here:
        here.ask("Colours?")
        here.finish()
        assert here.answer() == "Red."
        assert server.client.get("/page/page.js").status_code == 401


@pytest.mark.parametrize("pacing", STREAM_PACING)
def test_origins_are_the_same_however_the_stream_is_paced(browser: Browser, pacing: StreamPacing) -> None:
    text = "Red, green and blue."
    config = ServerConfig(port=0, stream_pacing=pacing, pacing_s=0.005)
    llm = writing_llm(text, oracle(text.encode()))
    with whole(llm, config) as server, visit(browser, server.url) as here:
        here.ask("Colours?")
        here.finish()
        assert here.answer() == text
        assert kinds(here) == ["plain", *["draft", "draft", "draft", "correction"] * 2]


def kinds(here: Visit) -> list[str]:
    """Of the first nine tokens."""
    found: list[str] = here.page.locator(".token").evaluate_all(
        "(nodes) => nodes.slice(0, 9).map((node) => node.classList[1])"
    )
    return found


@pytest.mark.real_model
def test_a_real_model_is_seen_drafting_and_writes_what_it_writes_without(
    browser: Browser, model_path: Callable[[str], Path]
) -> None:
    text = "The museum is open from Tuesday to Sunday. Visitors can leave their bags at the entrance."
    llm = borrador.load(model_path("smollm2-135m"), draft_tokens=4)
    with serve(llm, routes=page_routes()) as rig, visit(browser, rig.url) as here:
        here.page.get_by_role("button", name="Settings").click()
        here.page.get_by_label("Temperature").fill("0")
        here.page.get_by_label("Longest answer").fill("64")
        here.page.get_by_role("button", name="Save").click()
        here.ask(f"Repeat word for word: {text}")
        here.finish()
        messages = [{"role": "user", "content": f"Repeat word for word: {text}"}]
        plain = rig.post(
            "/v1/chat/completions", messages=messages, temperature=0, max_tokens=64, speculative={"enabled": False}
        ).json()
        assert here.answer() == plain["choices"][0]["message"]["content"]
        assert here.page.locator(".token.draft").count() > 5
