"""The page on the server that it is part of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect
from tests.server.page.browser import Visit, card, visit
from tests.server.rig import Rig, serve
from tests.server.writing import oracle, writing_llm

import borrador
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
    kinds = here.page.locator(".token").evaluate_all("(nodes) => nodes.slice(0, 9).map((node) => node.classList[1])")
    assert kinds == ["plain", *["draft", "draft", "draft", "correction"] * 2]


def test_pointing_at_a_token_tells_what_the_target_thought(here: Visit) -> None:
    allow(here, 40)
    here.ask("Colours?")
    here.finish()
    here.token("e").hover()
    assert "drafted and accepted" in card(here)
    assert "Target 99 %" in card(here) or "Target 100 %" in card(here)
    assert "3 of 5 accepted" in card(here)


def test_stop_frees_the_servers_slot(here: Visit, rig: Rig) -> None:
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


@pytest.mark.real_model
def test_a_real_model_is_seen_drafting_and_writes_what_it_writes_without(
    browser: Browser, model_path: Callable[[str], Path]
) -> None:
    text = "The museum is open from Tuesday to Sunday. Visitors can leave their bags at the entrance."
    with serve(borrador.load(model_path("smollm2-135m")), routes=page_routes()) as rig, visit(browser, rig.url) as here:
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
