from __future__ import annotations

import pytest
from tests.verify.scripted import make_parts

from borrador.bench.findings import Measured
from borrador.bench.lineup import Lineup
from borrador.bench.plan import LENGTHS, Planning
from borrador.bench.prompts import BenchPrompt, Halves
from borrador.errors import UsageError
from borrador.types import SamplingParams

TEXTS = ("abcabdabcab", "nomnonomn", "jihjihjih", "lklklm", "aabbaabb")
PROMPTS = tuple(
    BenchPrompt(f"t-{number}", "odd" if number == 4 else "letters", text) for number, text in enumerate(TEXTS)
)


def prompts(*tasks: str) -> tuple[BenchPrompt, ...]:
    return tuple(BenchPrompt(str(number), task, "?") for number, task in enumerate(tasks))


def ids(half: tuple[BenchPrompt, ...]) -> str:
    return "".join(prompt.id for prompt in half)


def test_each_task_is_split_evenly() -> None:
    halves = Halves.of(prompts(*"aaabbbcd"))
    assert (ids(halves.known), ids(halves.unseen)) == ("0246", "1357")
    assert [sum(prompt.task == "a" for prompt in half) for half in (halves.known, halves.unseen)] == [2, 1]
    assert [sum(prompt.task == "b" for prompt in half) for half in (halves.known, halves.unseen)] == [1, 2]


def test_tasks_of_one_prompt_alternate() -> None:
    halves = Halves.of(prompts(*"abcd"))
    assert (ids(halves.known), ids(halves.unseen)) == ("02", "13")


def test_one_prompt_cannot_be_split() -> None:
    with pytest.raises(UsageError, match=r"at least 2 prompts, .* got 1"):
        Halves.of(prompts("a"))


def test_a_plan_forecasts_every_length_and_measures_each_way_once() -> None:
    announced: list[Measured] = []
    with Lineup(make_parts()) as lineup:
        halves = Halves.of(PROMPTS)
        planning = Planning(lineup, halves, SamplingParams(max_tokens=24), announced.append)
        assert planning.expected_s() > 0.0
        plan = planning.plan()
        ways = lineup.ways
    assert [measured.prompt for measured in announced] == [*halves.known, *halves.unseen]
    assert (plan.identical, len(plan.answers)) == (5, 5)
    for way in ways:
        lines = [line for line in plan.lines if line.way == way]
        assert [line.draft_tokens for line in lines] == ([None] if way.by_costs else list(LENGTHS))
        (tried,) = (line for line in lines if line.measured is not None)
        assert tried.predicted.speedup == max(line.predicted.speedup for line in lines)
        assert all(line.predicted.tokens == sum(each.answers[way].decoded for each in planning.known) for line in lines)
        for each in planning.unseen:
            longest = max(len(record.draft.tokens) for record in each.answers[way].rounds)
            assert way.by_costs or longest == tried.draft_tokens
    assert set(plan.drafters) == {"lookup", "small"}
    assert plan.drafters["small"].cost_ratio > 0.0
    assert plan.row_costs[1] == 1.0


def test_tasks_without_unseen_prompts_have_no_measured_speed() -> None:
    with Lineup(make_parts()) as lineup:
        planning = Planning(lineup, Halves.of(PROMPTS), SamplingParams(max_tokens=16))
        plan = planning.plan()
        line = plan.lines[-1]
        tasks = planning._tasks(line)
    (lonely,) = (each for each in (*planning.known, *planning.unseen) if each.prompt.task == "odd")
    assert list(tasks) == ["letters", "odd"]
    assert (tasks["odd"].measured is None) == (lonely in planning.known)
    assert (tasks["odd"].predicted.tokens == 0) == (lonely in planning.unseen)
