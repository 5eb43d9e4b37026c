"""What the page shows of an answer: its text, where each token comes from, its rounds, what it cost."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect
from tests.server.page.browser import Visit, card, mark_of
from tests.server.page.scripted_server import (
    MUSEUM,
    MUSEUM_TEXT,
    Script,
    plain_steps,
    step,
)

pytestmark = pytest.mark.browser


def test_tokens_are_seen_before_the_answer_is_complete(script: Script, here: Visit) -> None:
    script.pause_s = 0.2
    script.steps = plain_steps("word " * 50)
    here.ask("Where?")
    expect(here.token("word")).to_be_visible()
    assert script.writing == 1


def test_every_token_carries_its_origin_in_colour_and_in_the_line_under_it(here: Visit) -> None:
    here.ask("When is it open?")
    here.finish()
    found = {text: mark_of(here, text) for text in ["The", " museum", " open", " Tuesday", " on"]}
    lines = {text: line for text, (line, _) in found.items()}
    assert lines == {"The": "none", " museum": "solid", " open": "double", " Tuesday": "wavy", " on": "dashed"}
    assert len({colour for _, colour in found.values()}) == 5
    assert here.answer() == MUSEUM_TEXT


def test_the_legend_shows_the_same_marks(here: Visit) -> None:
    marks = here.page.locator("#legend span").evaluate_all(
        "(nodes) => nodes.map((node) => [node.className, getComputedStyle(node).textDecorationLine === 'underline' "
        "? getComputedStyle(node).textDecorationStyle : 'none'])"
    )
    assert dict(marks) == {
        "draft": "solid",
        "correction": "wavy",
        "bonus": "double",
        "grammar": "dashed",
        "plain": "none",
    }


def test_pointing_at_a_token_tells_both_probabilities_the_drafter_and_the_round(here: Visit) -> None:
    here.ask("When?")
    here.finish()
    here.token(" museum").hover()
    told = card(here)
    for part in [
        "␣museum",
        "drafted and accepted",
        "Target 90 %",
        "Drafter 75 %",
        "suffix",
        "Round 2, 2 of 2 accepted",
    ]:
        assert part in told
    here.token(" Tuesday").hover()
    assert "Not accepted ␣Monday · ␣to" in card(here)
    here.page.mouse.move(5, 5)
    expect(here.page.locator("#card")).to_be_hidden()


def test_rounds_stand_in_a_strip_that_tells_what_was_proposed_and_accepted(here: Visit) -> None:
    here.ask("When?")
    here.finish()
    columns = here.page.locator(".strip .column")
    assert columns.count() == 4
    columns.nth(2).hover()
    told = card(here)
    for part in [
        "Round 3",
        "2 tokens",
        "Proposed 3, of which 1 accepted",
        "Not accepted ␣Monday · ␣to",
        "Checking 6.4 ms",
    ]:
        assert part in told
    marked = here.page.locator(".token.near").all_text_contents()
    assert marked == [" from", " Tuesday"]
    heights = [float(bar.get_attribute("height") or 0) for bar in columns.nth(2).locator(".accepted, .rest").all()]
    assert heights[1] > heights[0] > 0


def test_a_strip_longer_than_the_page_follows_the_answer(script: Script, here: Visit) -> None:
    script.steps = plain_steps("word " * 200)
    here.ask("Go on")
    here.finish()
    expect(here.page.locator(".strip .column")).to_have_count(201)
    left, hidden = here.page.locator(".strip").evaluate(
        "(node) => [node.scrollLeft, node.scrollWidth - node.clientWidth]"
    )
    assert left >= hidden - 20 > 500


def test_markup_in_an_answer_is_shown_as_text(script: Script, here: Visit) -> None:
    text = "<img src=x onerror=alert(1)><script>document.title='x'</script>&lt;b&gt;"
    script.steps = plain_steps(text)
    here.ask("<b>bold</b>")
    here.finish()
    assert here.answer() == text
    assert here.page.locator(".question").text_content() == "You: <b>bold</b>"
    assert here.page.locator("#turns :is(img, script, b)").count() == 0
    expect(here.page).to_have_title("scripted · borrador")


def test_a_fenced_block_gets_a_frame_and_loses_no_character(script: Script, here: Visit) -> None:
    text = "See:\n```python\nprint('``` ')\n```\nDone `x`."
    script.steps = [
        step(1, ("See:\n``", "target")),
        *[step(n, (piece, "target")) for n, piece in enumerate(["`python\npri", "nt('``` ')\n`", "``\nDone `x`."], 2)],
    ]
    here.ask("Code?")
    here.finish()
    assert here.answer() == text
    assert here.page.locator("pre.code").all_text_contents() == ["```python\nprint('``` ')\n```\n"]


def test_arrow_keys_walk_the_tokens_and_the_rounds(here: Visit) -> None:
    here.ask("When?")
    here.finish()
    here.page.get_by_role("switch", name="Drafting").focus()
    here.page.locator(".answer-text").focus()
    here.page.keyboard.press("ArrowRight")
    assert "␣museum" in card(here)
    expect(here.page.get_by_role("status")).to_contain_text("␣museum, drafted and accepted")
    here.page.keyboard.press("End")
    assert "Target 90 %" in card(here)
    here.page.get_by_role("slider", name="Rounds").focus()
    here.page.keyboard.press("ArrowLeft")
    expect(here.page.get_by_role("slider")).to_have_attribute(
        "aria-valuetext", "Round 3: 3 tokens proposed, 1 accepted, one corrected"
    )
    here.page.keyboard.press("Escape")
    expect(here.page.locator("#card")).to_be_hidden()


def test_a_card_stays_with_its_token_when_walking_scrolls_the_page(script: Script, here: Visit) -> None:
    script.steps = plain_steps("many words " * 400)
    here.ask("Go on")
    here.finish()
    here.page.get_by_role("switch", name="Drafting").focus()
    here.page.locator(".answer-text").focus()
    here.page.keyboard.press("Home")
    here.page.wait_for_timeout(200)
    expect(here.page.locator("#card")).to_be_visible()
    token, card_box = here.token("many").bounding_box(), here.page.locator("#card").bounding_box()
    assert token is not None
    assert card_box is not None
    assert 0 <= card_box["y"] - token["y"] - token["height"] < 20


def test_the_answer_is_read_aloud_in_whole_and_not_token_by_token(here: Visit) -> None:
    here.page.evaluate(
        "window.said = []; new MutationObserver(() => said.push(document.getElementById('announcer').textContent))"
        ".observe(document.getElementById('announcer'), { childList: true, characterData: true, subtree: true })"
    )
    here.ask("When?")
    here.finish()
    begins, *rest = here.page.evaluate("said")
    assert begins == "The answer is being written."
    assert " ".join(rest) == f"{MUSEUM_TEXT} Done, 8 tokens."
    assert len(rest) <= 2  # on a slow machine the sentence may be said before the answer has ended
    assert here.page.locator("[aria-live], [role=log]").count() == 1


def test_speeds_of_the_server_and_of_the_answer_are_shown(script: Script, here: Visit) -> None:
    expect(here.page.locator("#speeds")).to_contain_text("not yet measured")
    script.speeds = (90.0, 60.0)
    here.ask("When?")
    here.finish()
    expect(here.page.locator("#with-value")).to_have_text("90.0 tok/s, 1.50×")
    expect(here.page.locator("#without-value")).to_have_text("60.0 tok/s")
    expect(here.page.locator(".facts")).to_contain_text("123 tok/s")
    expect(here.page.locator(".facts")).to_contain_text("2.06× plain")
    expect(here.page.locator(".facts")).to_contain_text("8 tokens")


def test_a_server_without_drafters_is_not_said_to_pause(script: Script, here: Visit) -> None:
    script.draft_tokens_proposed = 0
    script.steps = plain_steps("word " * 60)
    here.page.reload()
    watch_pause(here)
    here.ask("Go on")
    here.finish()
    assert here.page.evaluate("window.pausedAfter") is None


def test_rounds_that_draft_nothing_are_told_as_a_pause(script: Script, here: Visit) -> None:
    script.pause_s = 0.05
    script.steps = [*MUSEUM, *plain_steps("word " * 60, len(MUSEUM) + 1)]
    watch_pause(here)
    here.ask("Go on")
    here.finish()
    drafting, rounds = 6, 8  # tokens until the last draft; rounds without one, of which the first wrote two
    assert here.page.evaluate("window.pausedAfter") >= drafting + rounds + 1
    expect(here.page.get_by_text("Speculation paused: would slow you down")).to_be_hidden()


def watch_pause(here: Visit) -> None:
    """Note after how many tokens the page first says that speculation pauses."""
    here.page.evaluate(
        "() => { const badge = document.getElementById('paused'); window.pausedAfter = null;"
        " const note = () => { if (!badge.hidden) window.pausedAfter ??= document.querySelectorAll('.token').length; };"
        " new MutationObserver(note).observe(badge, { attributes: true }); }"
    )
