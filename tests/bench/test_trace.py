from __future__ import annotations

from dataclasses import replace

from borrador.bench.prompts import BenchPrompt
from borrador.bench.trace import Tally, Trace, acceptance, acceptance_by_position, median, tally, total
from borrador.types import Draft, Origin, RoundRecord, Verdict

PROMPT = BenchPrompt("qa-1", "qa", "?")


def a_round(drafted: int, accepted: int) -> RoundRecord:
    return RoundRecord(
        number=2,
        draft=Draft(tokens=tuple(range(drafted))),
        verdict=Verdict(tuple(range(accepted)), 99, accepted == drafted, min(accepted + 1, drafted)),
        committed=(*range(accepted), 99),
        origins=(*(Origin.DRAFT,) * accepted, Origin.TARGET),
        draft_s=0.002,
        forward_s=0.010,
        total_s=0.015,
    )


def answer(*rounds: RoundRecord) -> Trace:
    return Trace(PROMPT, 10, tuple(range(1 + sum(len(each.committed) for each in rounds))), rounds)


def test_times_are_those_of_typical_rounds() -> None:
    trace = answer(a_round(4, 2), a_round(4, 0))
    assert (trace.decoded, trace.load.context) == (4, 12.5)
    assert [round(value, 6) for value in (trace.decode_s, trace.pass_s, trace.beside_s)] == [0.030, 0.010, 0.003]


def test_acceptance_counts_tested_tokens_alone() -> None:
    trace = answer(a_round(4, 2), a_round(4, 0), a_round(2, 2), a_round(0, 0))
    assert acceptance_by_position([trace]) == (2 / 3, 1.0, 0.0)
    assert acceptance([trace]) == 4 / 6
    assert acceptance([answer(a_round(0, 0))]) is None
    assert acceptance_by_position([]) == ()


def test_draft_tokens_behind_the_end_of_an_answer_are_neither_tested_nor_accepted() -> None:
    last = replace(a_round(4, 4), committed=(0, 1), origins=(Origin.DRAFT,) * 2)
    assert acceptance([answer(last)]) == 1.0
    assert acceptance_by_position([answer(last)]) == (1.0, 1.0)


def test_tallies_add_up() -> None:
    drafted, plain = answer(a_round(4, 2), a_round(4, 1)), answer(*[a_round(0, 0)] * 5)
    counted = tally(drafted, plain)
    assert (counted.tokens, counted.passes, counted.tokens_per_pass) == (5, 2, 2.5)
    assert round(counted.speedup, 6) == 2.5
    assert total([Tally(1, 1, 1.0, 2.0), Tally(3, 1, 1.0, 4.0)]) == Tally(4, 2, 2.0, 6.0)
    assert total([]) == Tally()
    assert (Tally().speedup, Tally().tokens_per_pass) == (0.0, 0.0)
    assert median([]) == 0.0
