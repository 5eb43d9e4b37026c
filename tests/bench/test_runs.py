from __future__ import annotations

from dataclasses import replace

import pytest
from tests.bench.records import make_pair, make_run
from tests.cli.scripted_llm import ROUNDS, STATS, make_round

from borrador.bench.runs import DrafterFigures, Run, drafters_of, together
from borrador.types import Completion, Origin, RoundRecord


def figures(tested: tuple[int, ...], accepted: tuple[int, ...], *, drafter: str = "lookup") -> DrafterFigures:
    return DrafterFigures(drafter=drafter, rounds=1, proposed=4, tested=tested, accepted=accepted)


def by(drafter: str, record: RoundRecord) -> RoundRecord:
    return replace(record, draft=replace(record.draft, drafter=drafter))


def test_position_is_tested_if_those_before_it_were_accepted() -> None:
    rounds = [make_round(2, (1, 2, 3, 4), 2, 9), make_round(3, (1, 2), 2, 9), make_round(4, (1,), 0, 9)]
    (found,) = drafters_of(rounds)
    assert (found.drafter, found.rounds, found.proposed) == ("lookup", 3, 7)
    assert (found.tested, found.accepted) == ((3, 2, 1), (2, 2, 0))
    assert found.acceptance(0) == pytest.approx(2 / 3)


def test_tokens_behind_the_end_of_the_answer_were_not_tested() -> None:
    whole = make_round(2, (1, 2, 3, 4), 3, 9)
    cut = replace(whole, committed=(1, 2), origins=(Origin.DRAFT, Origin.DRAFT))
    assert [(each.tested, each.accepted) for each in drafters_of([cut])] == [((1, 1), (1, 1))]


def test_drafters_are_counted_apart_and_rounds_without_a_draft_not_at_all() -> None:
    rounds = [
        by("suffix", make_round(2, (1,), 1, 9)),
        make_round(3, (), 0, 9),
        by("draft", make_round(4, (1,), 0, 9)),
        by("suffix", make_round(5, (1,), 1, 9)),
    ]
    assert [(each.drafter, each.rounds, each.accepted) for each in drafters_of(rounds)] == [
        ("suffix", 2, (2,)),
        ("draft", 1, (0,)),
    ]


def test_drafts_put_together_count_as_one_drafters_whoever_came_first() -> None:
    rounds = [by("suffix+/a/b.gguf", make_round(2, (1,), 1, 9)), by("/a/b.gguf+suffix", make_round(3, (1,), 0, 9))]
    (found,) = drafters_of(rounds, lambda joined: joined.replace("/a/b.gguf", "b.gguf").split("+"))
    assert (found.drafter, found.rounds, found.tested, found.accepted) == ("b.gguf+suffix", 2, (2,), (1,))


def test_figures_of_several_answers_add_up_by_position() -> None:
    assert together([figures((3, 1), (1, 1)), figures((2,), (2,)), figures((1,), (0,), drafter="suffix")]) == (
        DrafterFigures(drafter="lookup", rounds=2, proposed=8, tested=(5, 1), accepted=(3, 1)),
        figures((1,), (0,), drafter="suffix"),
    )


def test_run_keeps_the_rounds_that_decode() -> None:
    answer = Completion(text="a", token_ids=(1, 2), origins=(), finish_reason="stop", stats=STATS)
    run = Run.of(answer, ROUNDS)
    assert [(each.tokens, each.rows) for each in run.rounds] == [(3, 5), (3, 3)]
    assert (run.tokens, run.tokens_decoded) == (7, 6)
    assert [run.decode_tok_s, run.total_tok_s] == pytest.approx([100.0, 7 / 0.11])


def test_answer_of_one_token_has_no_decoding_speed() -> None:
    assert make_run(0.0, token_ids=(1,)).decode_tok_s is None
    assert make_run(0.0, token_ids=()).total_tok_s is None


def test_divergence_is_the_first_token_that_differs_or_the_end_of_the_shorter_answer() -> None:
    assert make_pair("a", "qa", 1.0).first_divergence is None
    assert make_pair("a", "qa", 1.0, token_ids=(1, 9, 3, 4, 5)).first_divergence == 1
    assert make_pair("a", "qa", 1.0, token_ids=(1, 2, 3)).first_divergence == 3
