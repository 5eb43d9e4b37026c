"""Answers made by hand: what the drafter would say and what passes cost is known, so the forecast has a right value."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from borrador.bench.forecast import Drafting, RowRatios, Step, cut, forecast, forecast_as_recorded
from borrador.bench.prompts import BenchPrompt
from borrador.bench.theory import expected_tokens, walltime_factor
from borrador.bench.trace import Tally, Trace, tally
from borrador.engine.candidates import Load
from borrador.engine.costs import BASE_CONTEXT, ContextCosts, RowCosts
from borrador.types import Draft, Origin, RoundRecord, Verdict

PROMPT = BenchPrompt("qa-1", "qa", "?")
ROW_COSTS = RowCosts({1: 0.010, 2: 0.011, 4: 0.013, 8: 0.020, 16: 0.040})
RATIOS = RowRatios(ROW_COSTS)
FLAT_COSTS = RowCosts({1: 0.010, 16: 0.010})
TOKEN_S, NOTHING_S, BESIDE_S, READING_S = 0.002, 0.0005, 0.001, 0.05


def a_round(
    drafted: int,
    accepted: int,
    pass_s: Callable[[float], float],
    *,
    parents: tuple[int, ...] | None = None,
    path: Sequence[int] | None = None,
    reading_s: float = 0.0,
) -> RoundRecord:
    draft_s = reading_s + (drafted * TOKEN_S if drafted else NOTHING_S)
    forward_s = pass_s(1 + drafted)
    way = tuple(range(accepted)) if path is None else tuple(path)
    return RoundRecord(
        number=2,
        draft=Draft(tokens=tuple(range(drafted)), parents=parents),
        verdict=Verdict(way, 99, accepted == drafted, min(accepted + 1, drafted)),
        committed=(*way, 99),
        origins=(Origin.DRAFT,) * len(way) + (Origin.TARGET,),
        draft_s=draft_s,
        forward_s=forward_s,
        total_s=draft_s + forward_s + BESIDE_S,
    )


def play(right: Sequence[bool | None], length: int, pass_s: Callable[[float], float] = ROW_COSTS) -> Trace:
    """An answer of a drafter that goes by the text alone.

    Args:
        right: for each token whether the drafter proposes it where those before it are right; None where it proposes
            nothing.
        length: drafted each round.
        pass_s: T(m).
    """
    rounds: list[RoundRecord] = []
    text = [*right, *[False] * length]
    place, reading_s = 0, READING_S
    while place < len(right):
        offered = list(itertools.takewhile(lambda each: each is not None, text[place : place + length]))
        accepted = len(list(itertools.takewhile(bool, offered)))
        rounds.append(a_round(len(offered), accepted, pass_s, reading_s=reading_s if offered else 0.0))
        reading_s = 0.0 if offered else reading_s
        place += accepted + 1
    return Trace(PROMPT, 10, tuple(range(place)), tuple(rounds))


def plain_of(trace: Trace, pass_s: Callable[[float], float] = ROW_COSTS) -> Trace:
    rounds = []
    for _ in range(trace.decoded):
        record = a_round(0, 0, pass_s)
        rounds.append(
            RoundRecord(
                number=2,
                draft=record.draft,
                verdict=record.verdict,
                committed=record.committed,
                origins=record.origins,
                draft_s=0.0,
                forward_s=record.forward_s,
                total_s=record.forward_s + BESIDE_S,
            )
        )
    return Trace(PROMPT, 10, trace.token_ids, tuple(rounds))


def accepted_at_random(alpha: float, count: int = 6000) -> list[bool | None]:
    generator = random.Random(7)
    return [generator.random() < alpha for _ in range(count)]


@pytest.mark.parametrize("alpha", [0.3, 0.6, 0.8])
@pytest.mark.parametrize("length", [1, 2, 4, 8])
def test_where_rows_cost_nothing_the_forecast_is_leviathans(alpha: float, length: int) -> None:
    trace = play(accepted_at_random(alpha), 8, FLAT_COSTS)
    plain = plain_of(trace, FLAT_COSTS)
    drafting = Drafting(token=0.2, nothing=0.0, beside_s=0.0)
    predicted = forecast(trace, plain, RowRatios(FLAT_COSTS), drafting, length)
    expected = walltime_factor(alpha, length, 0.2)
    without_beside = predicted._replace(plain_s=plain.decoded * 0.010)
    assert without_beside.speedup == pytest.approx(expected, rel=0.03)
    assert predicted.tokens_per_pass == pytest.approx(expected_tokens(alpha, length), rel=0.03)


def test_costs_of_rows_count_in_the_forecast() -> None:
    trace = play(accepted_at_random(0.7), 8)
    drafting = Drafting.of([trace], [plain_of(trace)])
    assert drafting.token == pytest.approx(TOKEN_S / 0.010)
    for length in (1, 3, 8):
        predicted = forecast(trace, plain_of(trace), RATIOS, drafting, length)
        accepted = (1 - 0.7 ** (length + 1)) / 0.3
        round_s = ROW_COSTS(1 + length) + length * TOKEN_S + BESIDE_S
        assert predicted.speedup == pytest.approx(accepted * 0.011 / round_s, rel=0.03)


@given(
    runs=st.lists(st.tuples(st.sampled_from([True, False, None]), st.integers(1, 7)), min_size=1, max_size=30),
    length=st.integers(1, 8),
)
def test_what_shorter_drafts_take_is_read_off_long_ones(runs: list[tuple[bool | None, int]], length: int) -> None:
    """Long drafts see the end of every run of right tokens, and no place without drafts: nothing is assumed then."""
    text = [right for each, count in runs for right in (*[each] * count, *[False] * 8)]
    long, short = play(text, 8), play(text, length)
    drafting = Drafting(TOKEN_S / 0.010, NOTHING_S / 0.010, BESIDE_S)
    predicted = forecast(long, plain_of(long), RATIOS, drafting, length)
    assert (predicted.tokens, predicted.passes) == (short.decoded, len(short.rounds))
    assert predicted.seconds == pytest.approx(short.decode_s)


def test_a_shorter_chain_goes_on_where_the_target_agreed() -> None:
    draft = Draft(tokens=(1, 2, 3, 4, 5, 6))
    assert list(cut(draft, (0, 1, 2), 6)) == [Step(6, 3)]
    assert list(cut(draft, (0, 1, 2), 2)) == [Step(2, 2), Step(2, 0)]
    assert list(cut(draft, (0, 1, 2, 3), 1)) == [Step(1, 1), Step(1, 1), Step(1, 0)]
    assert list(cut(draft, (), 4)) == [Step(4, 0)]
    assert list(cut(draft, (0, 1, 2, 3), 4, cut_off=True)) == [Step(4, 4)]
    assert list(cut(draft, (0, 1, 2, 3), 3, cut_off=True)) == [Step(3, 3), Step(3, 0)]
    assert list(cut(Draft(), (), 4)) == [Step(0, 0)]


def test_a_smaller_tree_is_the_first_tokens_of_the_larger() -> None:
    draft = Draft(tokens=(1, 2, 3, 4, 5), parents=(-1, -1, 1, 2, 0))
    assert list(cut(draft, (1, 2, 3), 5)) == [Step(5, 3)]
    assert list(cut(draft, (1, 2, 3), 3)) == [Step(3, 2), Step(0, 0)]
    assert list(cut(draft, (0, 4), 1)) == [Step(1, 1), Step(0, 0)]
    assert list(cut(draft, (1, 2, 3), 1)) == [Step(1, 0), Step(1, 1), Step(0, 0)]


def test_a_long_chain_that_was_right_goes_on_with_the_next() -> None:
    """Eighteen tokens that the drafter knows, in two drafts of eight and what the target added."""
    trace = play([True] * 17 + [False], 8)
    assert [len(record.verdict.path) for record in trace.rounds] == [8, 8]
    drafting = Drafting(TOKEN_S / 0.010, 0.0, BESIDE_S)
    passes = [forecast(trace, plain_of(trace), RATIOS, drafting, length).passes for length in (1, 2, 5, 8)]
    assert passes == [9, 6, 3, 2]


def test_reading_the_prompt_counts_once_whatever_the_length() -> None:
    trace = play(accepted_at_random(0.5, 200), 8)
    plain, drafting = plain_of(trace), Drafting(TOKEN_S / 0.010, 0.0, BESIDE_S)
    read = [forecast(trace, plain, RATIOS, drafting, length).seconds for length in (1, 8)]
    first = trace.rounds[0]
    unread = Trace(PROMPT, 10, trace.token_ids, (a_round(8, len(first.verdict.path), ROW_COSTS), *trace.rounds[1:]))
    known = [forecast(unread, plain, RATIOS, drafting, length).seconds for length in (1, 8)]
    assert [later - before for later, before in zip(read, known, strict=True)] == pytest.approx([READING_S] * 2)


def test_a_slower_machine_changes_seconds_and_no_ratio() -> None:
    trace = play(accepted_at_random(0.6, 400), 8, lambda rows: 2 * ROW_COSTS(rows))
    plain, drafting = plain_of(trace, lambda rows: 2 * ROW_COSTS(rows)), Drafting(0.1, 0.0, 0.0)
    fast = play(accepted_at_random(0.6, 400), 8)
    unread = [Trace(PROMPT, 10, each.token_ids, each.rounds[1:]) for each in (trace, fast)]
    slow_s, fast_s = (
        forecast(each, base, RATIOS, drafting, 4).seconds
        for each, base in zip(unread, (plain, plain_of(fast)), strict=True)
    )
    assert slow_s == pytest.approx(2 * fast_s, rel=0.02)


def test_rounds_as_they_were_cost_what_they_took() -> None:
    trace = play([True, True, False, None, None, True] * 20, 4)
    predicted = forecast_as_recorded(trace, plain_of(trace), RATIOS)
    measured = tally(trace, plain_of(trace))
    assert (predicted.tokens, predicted.passes) == (measured.tokens, measured.passes)
    assert predicted.seconds == pytest.approx(measured.seconds)
    assert predicted.plain_s == pytest.approx(measured.plain_s)


def test_answers_without_rounds_count_nothing() -> None:
    empty = Trace(PROMPT, 10, (5,), ())
    assert forecast(empty, empty, RATIOS, Drafting.of([empty], [empty]), 4) == Tally()
    assert forecast_as_recorded(empty, empty, RATIOS) == Tally()


def test_passes_of_answers_correct_what_rows_cost() -> None:
    """Nine rows take twice as long in answers as on their own, and one row is what plain decoding takes."""
    slow = RowCosts({1: 0.010, 9: 2 * ROW_COSTS(9)})
    trace = play([False] * 20, 8, slow)
    ratio, known = RowRatios(ROW_COSTS, [(trace, plain_of(trace))]).behind(Load()), RATIOS.behind(Load())
    assert [ratio(rows) / known(rows) for rows in (1, 5, 9, 16)] == pytest.approx([1.0, 1.5, 2.0, 2.0])
    few = play([False] * 5, 8, slow)
    ratio = RowRatios(ROW_COSTS, [(few, plain_of(few))]).behind(Load())
    assert ratio(9) == known(9)


def test_what_a_context_adds_counts_in_ratios() -> None:
    ratios = RowRatios(RowCosts({1: 1.0, 2: 2.0}, ContextCosts(reading_s=0.01, row_s=0.0)))
    assert ratios.behind(Load(context=BASE_CONTEXT + 100.0))(2) == pytest.approx(3.0 / 2.0)
    assert ratios.behind(Load())(2) == pytest.approx(2.0)
