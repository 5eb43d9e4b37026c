"""What can be done on the page: asking, stopping, settings, themes; by keyboard and on a phone."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Browser, expect
from tests.batches import eventually
from tests.server.page.browser import PHONE, Visit, mark_of, visit
from tests.server.page.scripted_server import (
    MUSEUM,
    MUSEUM_TEXT,
    Script,
    plain_steps,
)

pytestmark = pytest.mark.browser

# Tabs are processes of their own, and learn a little later of what another one keeps.
IS_KEPT = "(name) => JSON.parse(localStorage.getItem('borrador') ?? '{}')[name] === false"


def test_stop_ends_the_answer_here_and_on_the_server(script: Script, here: Visit) -> None:
    script.pause_s = 0.05
    script.steps = plain_steps("word " * 400)
    here.ask("Go on")
    expect(here.token("word")).to_be_visible()
    here.page.get_by_role("button", name="Stop").click()
    here.finish()
    eventually(lambda: script.writing == 0)
    expect(here.page.locator(".facts")).to_contain_text("stopped")
    assert 0 < len(here.answer()) < len("word " * 400)


def test_stop_ends_an_answer_that_has_not_begun(script: Script, here: Visit) -> None:
    script.holds = True
    here.ask("Go on")
    eventually(lambda: len(script.requests) == 1)
    here.page.get_by_role("button", name="Stop").click()
    here.finish()
    expect(here.page.locator(".facts")).to_have_text("stopped")
    expect(here.page.get_by_role("button", name="Send")).to_be_visible()
    expect(here.page.get_by_role("button", name="Copy")).to_have_count(0)


def test_a_double_click_on_send_does_not_stop_what_it_asks_for(script: Script, here: Visit) -> None:
    script.pause_s = 0.05
    here.page.get_by_label("Your question").fill("First?")
    here.page.get_by_role("button", name="Send").dblclick()
    expect(here.page.locator(".answer-text")).to_have_text(MUSEUM_TEXT)
    here.finish()
    expect(here.page.locator(".facts")).not_to_contain_text("stopped")
    assert len(script.requests) == 1


def test_regenerate_asks_the_same_again_and_replaces_the_answer(script: Script, here: Visit) -> None:
    here.ask("First?")
    here.finish()
    script.steps = plain_steps("Another answer.")
    here.page.get_by_role("button", name="Regenerate").click()
    expect(here.page.locator(".answer-text")).to_have_text("Another answer.")
    assert [request["messages"] for request in script.requests] == [[{"role": "user", "content": "First?"}]] * 2


def test_the_conversation_goes_along_with_every_question(script: Script, here: Visit) -> None:
    here.ask("First?")
    here.finish()
    here.ask("Second?")
    eventually(lambda: len(script.requests) == 2)
    assert script.requests[1]["messages"] == [
        {"role": "user", "content": "First?"},
        {"role": "assistant", "content": MUSEUM_TEXT},
        {"role": "user", "content": "Second?"},
    ]
    here.finish()
    here.page.get_by_role("button", name="New chat").click()
    here.ask("Third?")
    eventually(lambda: len(script.requests) == 3)
    assert script.requests[2]["messages"] == [{"role": "user", "content": "Third?"}]


def test_drafting_is_asked_for_until_it_is_switched_off(script: Script, here: Visit) -> None:
    here.ask("First?")
    here.finish()
    here.page.get_by_role("switch", name="Drafting").click()
    here.ask("Second?")
    here.finish()
    assert [request["speculative"]["enabled"] for request in script.requests] == [True, False]
    expect(here.page.locator(".facts").last).to_contain_text("drafting off")


def test_colours_can_be_switched_off_and_stay_so(here: Visit) -> None:
    here.ask("When?")
    here.finish()
    here.page.get_by_role("switch", name="Colours").click()
    assert mark_of(here, " museum") == mark_of(here, "The")
    here.page.reload()
    expect(here.page.get_by_role("switch", name="Colours")).not_to_be_checked()


def test_settings_become_parameters(script: Script, here: Visit) -> None:
    settings: dict[str, Any] = {"System prompt": "Be brief.", "Temperature": "0.5", "Longest answer": "77", "Seed": "9"}
    here.page.get_by_role("button", name="Settings").click()
    for name, value in settings.items():
        here.page.get_by_label(name).fill(value)
    here.page.get_by_role("switch", name="Ask for the target").click()
    here.page.get_by_role("button", name="Save").click()
    here.ask("When?")
    here.finish()
    request = script.requests[0]
    assert {name: request[name] for name in ["temperature", "max_tokens", "seed"]} == {
        "temperature": 0.5,
        "max_tokens": 77,
        "seed": 9,
    }
    assert "logprobs" not in request
    assert request["messages"][0] == {"role": "system", "content": "Be brief."}


def test_settings_hold_for_a_question_sent_the_moment_they_are_saved(script: Script, here: Visit) -> None:
    here.page.get_by_role("button", name="Settings").click()
    here.page.get_by_label("Temperature").fill("0")
    here.page.evaluate(
        """() => {
            document.querySelector("#settings [value=save]").click();
            document.getElementById("question").value = "When?";
            document.getElementById("composer").requestSubmit();
        }"""
    )
    here.finish()
    assert script.requests[0]["temperature"] == 0


def test_settings_left_without_saving_change_nothing(script: Script, here: Visit) -> None:
    here.page.get_by_role("button", name="Settings").click()
    here.page.get_by_label("Temperature").fill("1.9")
    here.page.keyboard.press("Escape")
    here.ask("When?")
    here.finish()
    assert script.requests[0]["temperature"] == 0.3
    assert script.requests[0]["logprobs"] is True
    assert "seed" not in script.requests[0]


def test_a_tab_does_not_undo_what_another_one_has_set(here: Visit) -> None:
    other = here.page.context.new_page()
    other.goto(here.page.url)
    other.get_by_role("switch", name="Drafting").click()
    here.page.wait_for_function(IS_KEPT, arg="drafting")
    here.page.get_by_role("switch", name="Colours").click()
    other.wait_for_function(IS_KEPT, arg="colours")
    other.reload()
    expect(other.get_by_role("switch", name="Drafting")).not_to_be_checked()
    expect(other.get_by_role("switch", name="Colours")).not_to_be_checked()


def test_dark_mode_follows_the_system_until_it_is_chosen(browser: Browser, url: str) -> None:
    def paper(here: Visit) -> int:
        colour = here.page.evaluate("getComputedStyle(document.body).backgroundColor")
        return sum(map(int, colour.removeprefix("rgb(").removesuffix(")").split(", ")))

    with visit(browser, url) as light, visit(browser, url, dark=True) as dark:
        assert paper(light) > 700
        assert paper(dark) < 100
        light.page.get_by_role("button", name="Dark mode").click()
        assert paper(light) < 100
        light.page.reload()
        assert paper(light) < 100
        expect(light.page.get_by_role("button", name="Dark mode")).to_have_attribute("aria-pressed", "true")


def test_a_phone_needs_no_horizontal_scrolling(browser: Browser, url: str, script: Script) -> None:
    script.steps = [*MUSEUM, *plain_steps("\n```\n" + "x" * 400 + "\n```\n"), *plain_steps("word " * 100)]
    with visit(browser, url, PHONE) as here:
        assert here.width == (360, 360)
        here.ask("u" * 300)
        here.finish()
        here.token("museum").hover()
        assert here.width == (360, 360)
        edges = here.page.locator("button:visible, .card, .switch").evaluate_all(
            "(nodes) => nodes.map((node) => [node.getBoundingClientRect().left, node.getBoundingClientRect().right])"
        )
        assert all(left >= 0 and right <= 360 for left, right in edges)


def test_every_control_has_a_name(here: Visit) -> None:
    here.ask("When?")
    here.finish()
    assert unnamed(here) == []
    here.page.get_by_role("button", name="Settings").click()
    assert unnamed(here) == []


def unnamed(here: Visit) -> list[Any]:
    """Controls without an accessible name, as the browser computes it."""
    session = here.page.context.new_cdp_session(here.page)
    nodes = session.send("Accessibility.getFullAXTree")["nodes"]
    roles = {"button", "textbox", "switch", "slider", "spinbutton", "checkbox", "link", "dialog", "group", "list"}
    controls = [node for node in nodes if not node["ignored"] and node["role"]["value"] in roles]
    assert len(controls) > 8
    named = {"list"} ^ roles
    return [node for node in controls if node["role"]["value"] in named and not node.get("name", {}).get("value")]


def test_the_keyboard_alone_is_enough(script: Script, here: Visit) -> None:
    script.pause_s = 0.05
    keyboard = here.page.keyboard
    expect(here.page.get_by_label("Your question")).to_be_focused()
    keyboard.type("One")
    keyboard.press("Shift+Enter")
    keyboard.type("Two")
    keyboard.press("Enter")
    here.finish()
    assert script.requests[0]["messages"][0]["content"] == "One\nTwo"
    reached = walk_by_tab(here)
    assert {"New chat", "Settings", "Dark mode", "Copy", "Regenerate", "Drafting", "Colours", "Rounds"} <= reached
    script.steps = plain_steps("word " * 400)
    here.page.get_by_label("Your question").focus()
    keyboard.type("Three")
    keyboard.press("Enter")
    expect(here.token("word")).to_be_visible()
    keyboard.press("Escape")
    here.finish()
    eventually(lambda: script.writing == 0)


def walk_by_tab(here: Visit) -> set[str]:
    """Names of everything that Tab reaches; each of them must show that it has the focus."""
    reached: set[str] = set()
    for _ in range(20):
        here.page.keyboard.press("Tab")
        name, shown = here.page.evaluate(
            "(() => { const node = document.activeElement; const drawn = node.nextElementSibling;"
            " const outlined = (n) => n && getComputedStyle(n).outlineStyle !== 'none';"
            " return [node.ariaLabel || node.labels?.[0]?.textContent.trim() || node.textContent.trim(),"
            "  outlined(node) || (node.type === 'checkbox' && outlined(drawn)) || node.matches('body, textarea')]; })()"
        )
        assert shown, name
        reached.add(name)
    return reached


def test_a_finger_that_touches_a_token_leaves_its_card_open(browser: Browser, url: str) -> None:
    with visit(browser, url, PHONE, touch=True) as here:
        here.ask("When?")
        here.finish()
        here.token("museum").tap()
        expect(here.page.locator("#card")).to_contain_text("drafted and accepted")
        here.page.locator(".question").tap()
        expect(here.page.locator("#card")).to_be_hidden()


@pytest.mark.parametrize("clipboard", ["navigator.clipboard", "undefined"])
def test_copy_copies_the_answer_with_and_without_a_clipboard_of_the_page(here: Visit, clipboard: str) -> None:
    here.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    here.page.evaluate(f"Object.defineProperty(navigator, 'clipboard', {{ value: {clipboard} }})")
    here.ask("When?")
    here.finish()
    here.watch_buttons()
    here.page.get_by_role("button", name="Copy").click()
    here.wait_for_button("Copied")
    here.page.get_by_label("Your question").focus()
    here.page.keyboard.press("Control+V")
    expect(here.page.get_by_label("Your question")).to_have_value(MUSEUM_TEXT)


def test_a_browser_that_keeps_nothing_is_served_all_the_same(here: Visit) -> None:
    for store in ["localStorage", "sessionStorage"]:
        here.page.add_init_script(f"Object.defineProperty(window, '{store}', {{ get() {{ throw new Error('no'); }} }})")
    here.page.reload()
    here.page.get_by_role("button", name="Dark mode").click()
    here.page.get_by_role("switch", name="Colours").click()
    here.ask("When?")
    here.finish()
    assert here.answer() == MUSEUM_TEXT
