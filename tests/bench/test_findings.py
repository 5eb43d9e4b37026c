from __future__ import annotations

import json

import pytest

from borrador.bench.findings import DrafterFacts, Line, Measured, Plan, TaskFacts, recommend
from borrador.bench.lineup import Way
from borrador.bench.prompts import BenchPrompt
from borrador.bench.trace import Tally, Trace

LOOKUP, SMALL = Way(("lookup",)), Way(("small",))
FREE, ALL = Way(("lookup",), by_costs=True), Way(("lookup", "small"), by_costs=True)
PROMPT = BenchPrompt("qa-1", "qa", "?")


def line(way: Way, measured: float | None, predicted: float = 1.5, draft_tokens: int | None = None) -> Line:
    seen = None if measured is None else Tally(100, 50, 1.0, measured)
    return Line(way, draft_tokens, Tally(100, 40, 2.0, 2.0 * predicted), seen)


def test_the_fastest_is_recommended() -> None:
    lines = [line(LOOKUP, 1.2, draft_tokens=4), line(SMALL, 1.6, draft_tokens=3), line(FREE, 1.3), line(ALL, 1.5)]
    assert recommend(lines) is lines[1]


def test_of_what_is_about_as_fast_costs_choose_and_few_drafters_are_better() -> None:
    lines = [line(LOOKUP, 1.50, draft_tokens=4), line(SMALL, 1.2), line(FREE, 1.49), line(ALL, 1.51)]
    assert recommend(lines) is lines[2]
    lines[2] = line(FREE, 1.40)
    assert recommend(lines) is lines[3]
    lines[3] = line(ALL, 1.40)
    assert recommend(lines) is lines[0]


def test_what_was_not_measured_is_not_recommended() -> None:
    lines = [line(LOOKUP, None, predicted=3.0), line(SMALL, 1.2)]
    assert recommend(lines) is lines[1]


@pytest.mark.parametrize("speedups", [(), (0.8, 0.9), (1.0, 1.01)])
def test_plain_decoding_is_recommended_where_drafts_gain_nothing(speedups: tuple[float, ...]) -> None:
    assert recommend([line(LOOKUP, speedup) for speedup in speedups]) is None


def test_error_is_of_the_predicted_speedup() -> None:
    assert line(LOOKUP, 1.25, predicted=1.5).error == pytest.approx(0.2)
    assert line(LOOKUP, None).error is None


def test_answers_that_differ_are_found() -> None:
    plain, same, other = (Trace(PROMPT, 3, ids, ()) for ids in ((1, 2), (1, 2), (1, 3)))
    assert Measured(PROMPT, plain, {LOOKUP: same}).identical
    assert Measured(PROMPT, plain, {LOOKUP: same, ALL: other}).differing == ALL


def test_a_plan_is_json() -> None:
    chosen = line(ALL, 1.25)
    same = Trace(PROMPT, 3, (1, 2), ())
    plan = Plan(
        row_costs={1: 1.0, 2: 1.05},
        pass_s=0.02,
        drafters={"lookup": DrafterFacts(0.5, (0.6, 0.4), 0.001), "small": DrafterFacts(None, (), 0.3)},
        lines=(line(LOOKUP, None, draft_tokens=2), chosen),
        recommended=chosen,
        tasks={"qa": TaskFacts(None, Tally(10, 5, 1.0, 1.2), None)},
        answers=(Measured(PROMPT, same, {ALL: same}),),
    )
    entry = json.loads(json.dumps(plan.as_json(), allow_nan=False))
    assert entry["recommended"] == {
        "draft": ["lookup", "small"],
        "draft_tokens": None,
        "tokens_per_pass": 2.5,
        "predicted": 1.5,
        "measured": 1.25,
        "error": 0.2,
    }
    assert entry["ways"][0] | {"draft_tokens": 2, "measured": None, "error": None} == entry["ways"][0]
    assert entry["row_costs"] == {"1": 1.0, "2": 1.05}
    assert entry["per_task"] == {"qa": {"acceptance": None, "predicted": 1.2, "measured": None}}
    assert entry["drafters"]["small"] == {"acceptance": None, "acceptance_by_position": [], "cost_ratio": 0.3}
    assert (entry["prompts"], entry["identical"], plan.speedup) == (1, 1, 1.25)
