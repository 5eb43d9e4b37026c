from __future__ import annotations

import asyncio
from collections import Counter
from itertools import groupby

import pytest
from tests import virtual_time

from borrador.bench.client import Answer
from borrador.bench.load import Level, LoadPlan, run_levels
from borrador.bench.prompts import BenchPrompt
from borrador.errors import BorradorError, UsageError
from borrador.remote.refusal import RefusedError

PROMPTS = (BenchPrompt("a", "qa", "One?"), BenchPrompt("b", "qa", "Two?"), BenchPrompt("c", "qa", "Three?"))


class Server:
    """Answers after a pause, and notes what it was asked and how many asked at once."""

    def __init__(self, pause_s: float = 0.0) -> None:
        self.pause_s = pause_s
        self.asked: list[tuple[str, bool | None]] = []
        self.at_once: list[int] = []
        self.errors: dict[int, BorradorError] = {}
        self._now = 0

    async def ask(self, question: str, speculate: bool | None = None) -> Answer:
        number = len(self.asked)
        self.asked.append((question, speculate))
        self._now += 1
        self.at_once.append(self._now)
        await asyncio.sleep(self.pause_s)
        self._now -= 1
        if number in self.errors:
            raise self.errors[number]
        return Answer(question, 5, True, 0.1, 0.5)


def run(server: Server, plan: LoadPlan, *, both: bool) -> list[Level]:
    async def collect() -> list[Level]:
        return [level async for level in run_levels(server.ask, plan, PROMPTS, both=both)]

    return virtual_time.run(collect())


def test_every_level_has_as_many_clients_as_it_says_and_no_more() -> None:
    server = Server(pause_s=0.01)
    levels = run(server, LoadPlan(clients=(1, 4, 16)), both=False)
    assert [level.clients for level in levels] == [1, 4, 16]
    assert [len(level.series[0].outcomes) for level in levels] == [8, 8, 32]
    assert max(server.at_once[1:9]) == 1
    assert max(server.at_once[9:17]) == 4
    assert max(server.at_once[17:]) == 16


def test_every_question_is_asked_once_in_each_way_and_no_two_are_alike() -> None:
    server = Server()
    run(server, LoadPlan(clients=(2, 3), requests=8), both=True)
    in_both = {text for text, way in server.asked if (text, not way) in server.asked}
    ways = Counter((text, way) for text, way in server.asked if text in in_both)
    assert set(ways.values()) == {1}
    drafted, plain = ({question for question, way in ways if way is speculate} for speculate in (True, False))
    assert drafted == plain
    assert len(drafted) == 16


def test_ways_take_turns_and_swap_them() -> None:
    server = Server()
    run(server, LoadPlan(clients=(2,), requests=4), both=True)
    assert [way for _, way in server.asked] == [
        True,
        False,
        *[True] * 2,
        *[False] * 2,
        *[True] * 2,
        *[False] * 4,
        *[True] * 2,
    ]


def test_many_questions_are_asked_in_many_short_blocks_each_of_which_keeps_all_clients_busy() -> None:
    server = Server()
    run(server, LoadPlan(clients=(2,), requests=18), both=True)
    ways = [way for _, way in server.asked[6:]]
    assert [(way, len(list(same))) for way, same in groupby(ways)] == [
        (True, 4),
        (False, 4 + 5),
        (True, 5 + 4),
        (False, 4 + 5),
        (True, 5),
    ]


def test_questions_take_the_prompts_in_turn_with_numbers_of_their_own() -> None:
    server = Server()
    run(server, LoadPlan(clients=(1,), requests=4), both=False)
    assert [question for question, _ in server.asked] == [
        "Request 0. One?",
        "Request 1. Two?",
        "Request 2. Three?",
        "Request 3. One?",
        "Request 4. Two?",
    ]


def test_seconds_of_a_series_are_those_of_its_blocks() -> None:
    server = Server(pause_s=0.05)
    (level,) = run(server, LoadPlan(clients=(2,), requests=8), both=True)
    for series in level.series:
        assert series.seconds == pytest.approx(4 * 0.05)


def test_errors_end_one_question_and_not_its_client() -> None:
    server = Server()
    server.errors = {1: BorradorError("broken"), 2: RefusedError("busy", status=429, pause_s=0.01)}
    (level,) = run(server, LoadPlan(clients=(1,), requests=6), both=False)
    outcomes = level.series[0].outcomes
    assert [outcome.rejected for outcome in outcomes] == [False, True, False, False, False, False]
    assert [outcome.error is None for outcome in outcomes] == [False, False, True, True, True, True]


def test_client_waits_as_long_as_a_busy_server_asks() -> None:
    server = Server()
    server.errors = {1: RefusedError("busy", status=429, pause_s=0.3)}
    (level,) = run(server, LoadPlan(clients=(1,), requests=2), both=False)
    assert level.series[0].seconds == pytest.approx(0.3)


def test_server_that_fails_the_first_question_is_not_tested() -> None:
    server = Server()
    server.errors = {0: BorradorError("broken")}
    with pytest.raises(BorradorError, match="broken"):
        run(server, LoadPlan(clients=(1,)), both=False)
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("clients", "requests", "told"),
    [
        ((), None, "--concurrency must be"),
        ((0,), None, "numbers from 1 to 1024, got 0"),
        ((1025,), None, "got 1025"),
        ((8, 2), 15, "--requests must be at least twice the most clients, 16, got 15"),
    ],
)
def test_plan_that_cannot_be_followed_is_refused(clients: tuple[int, ...], requests: int | None, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        LoadPlan(clients=clients, requests=requests)
