from __future__ import annotations

from dataclasses import replace

import pytest
from tests.cli.conftest import Borrador
from tests.cli.scripted_llm import ANSWER, PIECES, ROUNDS, ScriptedLLM, make_round

from borrador.cli.trace import (
    ASCII_MARKS,
    UNICODE_MARKS,
    Marks,
    describe_marks,
    describe_reason,
    describe_round,
    drafter_width,
    quote,
)
from borrador.types import Consideration, Origin, Reason, RoundRecord


def describe(record: RoundRecord, marks: Marks = UNICODE_MARKS) -> str:
    return describe_round(record, PIECES.__getitem__, marks).plain.split("  [")[0]


def test_plain_round_shows_the_targets_token() -> None:
    assert describe(ROUNDS[0]) == 'round   1  none     = "The"'


@pytest.mark.parametrize(
    ("drafters", "width"),
    [
        ([], 8),
        (["lookup"], 8),
        (["suffix", "recycle"], 14),
        (["lookup", "qwen2.5-coder-0.5b"], 24),
        (["/models/" * 9], 24),
    ],
)
def test_tokens_stand_below_each_other_whoever_drafted_them(drafters: list[str], width: int) -> None:
    assert drafter_width(drafters) == width
    for name in ("none", *drafters):
        record = replace(ROUNDS[1], draft=replace(ROUNDS[1].draft, drafter=name))
        line = describe_round(record, PIECES.__getitem__, width=width).plain
        assert line.index("✓") == len("round   2  ") + width + 1


def test_miss_shows_what_the_target_wrote_instead() -> None:
    assert describe(ROUNDS[1]) == 'round   2  lookup   ✓ " capital" ✓ " is" ✗ " Paris" → " Rome" ~ ","'


def test_fully_accepted_draft_shows_the_bonus_token() -> None:
    assert describe(ROUNDS[2]) == 'round   3  lookup   ✓ "," ✓ " of" + " course"'


def test_tree_shows_the_rejected_siblings_of_the_accepted_path() -> None:
    record = make_round(4, (2, 3, 5), 1, 4, parents=(-1, -1, 0))
    assert describe(record) == 'round   4  lookup   ✓ " capital" ✗ " Paris" → " Rome" ~ " is"'


def end_after(record: RoundRecord, count: int) -> RoundRecord:
    return replace(record, committed=record.committed[:count], origins=record.origins[:count])


def test_end_of_generation_token_is_shown_as_no_part_of_the_text() -> None:
    assert describe(end_after(ROUNDS[0], 0)) == 'round   1  none     | "The"'
    assert describe(end_after(ROUNDS[1], 2)) == ('round   2  lookup   ✓ " capital" ✓ " is" ✗ " Paris" | " Rome" ~ ","')


def test_tokens_behind_the_end_are_shown_as_no_part_of_the_text() -> None:
    assert describe(end_after(ROUNDS[1], 1)) == ('round   2  lookup   ✓ " capital" | " is" | " Rome" ~ " Paris" ~ ","')


def test_tokens_of_the_grammar_stand_behind_the_targets_own() -> None:
    record = ROUNDS[1]
    forced = replace(record, committed=(*record.committed, 6, 7), origins=(*record.origins, *[Origin.GRAMMAR] * 2))
    assert describe(forced) == 'round   2  lookup   ✓ " capital" ✓ " is" ✗ " Paris" → " Rome" » "," » " of" ~ ","'


@pytest.mark.parametrize("shaped", [True, False])
def test_the_grammars_mark_is_explained_where_there_is_a_grammar(shaped: bool) -> None:
    assert ("» the only one the grammar allows" in describe_marks(UNICODE_MARKS, shaped=shaped).plain) == shaped


def test_marks_have_a_form_for_terminals_without_unicode() -> None:
    assert describe(ROUNDS[1], ASCII_MARKS) == 'round   2  lookup   v " capital" v " is" x " Paris" -> " Rome" ~ ","'


def test_accepted_rejected_and_corrected_tokens_differ_in_colour() -> None:
    spans = describe_round(ROUNDS[1], PIECES.__getitem__).spans
    assert [span.style for span in spans] == ["green", "green", "red", "yellow", "dim", "dim"]


def test_parts_of_a_character_are_shown_as_they_are_told() -> None:
    assert quote(" \\xc3") == r'" \xc3"'
    assert quote("C:\\dir") == r'"C:\\dir"'


@pytest.mark.parametrize(("piece", "shown"), [("\n", r'"\n"'), ("é", '"é"'), ('"', r'"\""'), ("\x1b", r'"\u001b"')])
def test_tokens_are_quoted_so_that_no_control_character_reaches_the_terminal(piece: str, shown: str) -> None:
    assert quote(piece) == shown


def test_trace_prints_every_round_on_standard_error(borrador: Borrador, scripted: ScriptedLLM) -> None:
    result = borrador("run", "--trace", "Which city?")
    rounds = [line for line in result.err.splitlines() if line.startswith("round")]
    assert result.out == ANSWER
    assert [line.split()[1] for line in rounds] == ["1", "2", "3"]
    assert rounds[1].endswith("[draft 0.1 ms, pass 14.2 ms]")


def test_reasons_name_every_drafter_what_was_expected_and_what_was_chosen() -> None:
    reason = Reason(
        plain_s=0.0312,
        round_s=0.0331,
        expected=1.9,
        speed=2.73,
        considered=(
            Consideration("lookup", 3, 1.42, None, ""),
            Consideration("recycle", 0, 0.0, None, "rests"),
            Consideration("small", 0, 0.0, 1.31, "2.73x without it"),
        ),
    )
    assert describe_reason(ROUNDS[1], reason).plain == (
        "round   2  why: lookup proposed 3, 1.4 expected; recycle rests; small not asked (1.31x, 2.73x "
        "without it); so verify 4, 1.9 expected, 33.1 ms for 31.2: 2.73x"
    )
    assert describe_reason(ROUNDS[0], reason).plain.endswith("; so nothing, 31.2 ms")


@pytest.mark.parametrize("options", [("-d", "none"), ("--draft-tokens", "3")])
def test_explaining_needs_a_choice(borrador: Borrador, options: tuple[str, ...]) -> None:
    result = borrador("run", "--explain", *options, "Which city?")
    assert (result.code, result.out) == (2, "")
    assert "--explain" in result.err
