"""`borrador chat` and `borrador bench` with a server of our own, whose model and drafter are known."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import Borrador
from tests.cli.on_terminal import Terminal
from tests.server.rig import Rig, serve
from tests.server.writing import oracle, writing_llm

ANSWER = "Red, green and blue: 🟥 grün 한국."


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    with serve(writing_llm(ANSWER, oracle(ANSWER.encode()))) as running:
        yield running


def test_chat_is_answered_with_the_figures_of_the_server(borrador: Borrador, rig: Rig) -> None:
    result = borrador("chat", "--url", rig.url, "-s", "Be brief.", stdin="Which colours? ö\nSure?\n".encode())
    assert (result.code, result.out) == (0, f"{ANSWER}\n{ANSWER}\n")
    footer = result.err.splitlines()[0].split(" · ")
    assert footer[0].endswith(" tok/s")
    # The prompt's pass writes one of the 39 tokens, nine rounds three of four each, the last one two of three.
    assert footer[1:3] == ["39 tokens", "74 % of tested draft tokens accepted"]


def test_chat_without_drafts_tests_none(borrador: Borrador, rig: Rig) -> None:
    result = borrador("chat", "--url", rig.url, stdin=b"/draft off\nWhich colours?\n")
    assert (result.code, result.out) == (0, f"{ANSWER}\n")
    assert "accepted" not in result.err


def test_every_sampling_parameter_is_understood(borrador: Borrador, rig: Rig) -> None:
    words = ["--temp", "0.5", "--top-k", "3", "--top-p", "0.9", "--min-p", "0.1", "--typical-p", "0.9"]
    words += ["--repeat-penalty", "1.1", "--presence-penalty", "0.1", "--frequency-penalty", "0.1", "--seed", "3"]
    words += ["--penalty-window", "9", "--stop", "NEVER", "--acceptance", "seeded", "--draft-tokens", "2", "-n", "9"]
    result = borrador("chat", "--url", rig.url, *words, stdin=b"/set min_tokens 2\nWhich colours?\n")
    assert (result.code, result.out) == (0, f"{ANSWER[:9]}\n")
    assert "the answer was cut at 9 tokens" in result.err


def test_wrong_value_is_told_in_the_words_of_the_server(borrador: Borrador, rig: Rig) -> None:
    result = borrador("chat", "--url", rig.url, "--temp", "3", stdin=b"Which colours?\n")
    assert (result.code, result.out) == (1, "")
    assert "error: the server refused the request (400): " in result.err
    assert "temperature" in result.err


def test_conversation_that_is_too_long_is_a_sentence(borrador: Borrador, rig: Rig) -> None:
    result = borrador("chat", "--url", rig.url, stdin=b"x" * 5000 + b"\n")
    assert result.code == 2
    assert "Nothing was dropped" in result.err


def test_colours_show_what_the_drafter_knew(rig: Rig, tmp_path: Path) -> None:
    with Terminal("chat", "--url", rig.url, environment={"BORRADOR_HISTORY": str(tmp_path)}) as terminal:
        terminal.ask("/color on")
        terminal.expect("are underlined")
        terminal.ask("Which colours?")
        terminal.expect(ANSWER)
        assert b"\x1b[4;32me\x1b[0m" in terminal.shown


def test_answer_that_is_stopped_ends_on_the_server(rig: Rig, tmp_path: Path) -> None:
    with serve(writing_llm(ANSWER * 500, context_length=1 << 16, pass_s=0.02)) as slow:
        with Terminal(
            "chat", "--url", slow.url, "-n", "30k", environment={"BORRADOR_HISTORY": str(tmp_path)}
        ) as terminal:
            terminal.ask("Which colours?")
            terminal.expect("green and blue")
            terminal.type("\x03")
            terminal.expect("stopped")
            slow.settle()
        assert [outcome.reason for outcome in slow.outcomes] == ["cancelled"]


def test_load_has_equal_answers_with_drafts_and_without(borrador: Borrador, rig: Rig) -> None:
    result = borrador("bench", "--url", rig.url, "--concurrency", "1,6", "--json")
    entry = json.loads(result.out.splitlines()[-1])
    assert (result.code, entry["speculative_field"], entry["tokens_from"]) == (0, "understood", "usage")
    assert [(level["compared"], level["identical"]) for level in entry["levels"]] == [(8, 8), (12, 12)]
    tokens = len(ANSWER.encode())
    assert [[series["tokens"] for series in level["series"]] for level in entry["levels"]] == [
        [8 * tokens] * 2,
        [12 * tokens] * 2,
    ]
