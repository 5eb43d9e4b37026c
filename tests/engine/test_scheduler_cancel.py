"""Whoever leaves frees his place within a step, whatever he was waiting for, and nobody else notices."""

from __future__ import annotations

import random
import threading
import time
from typing import Any

import pytest
from tests.batches import Clerk, eventually, send
from tests.scripted import VOCABULARY, scripted_llm

from borrador.draft.lookup import LookupDrafter
from borrador.draft.model import ModelDrafter
from borrador.engine.llm import LLM
from borrador.engine.requests import Drafting
from borrador.engine.scheduler import Scheduler, SchedulerLimits
from borrador.errors import QueueFullError
from borrador.models.scripted import ScriptedModel
from borrador.types import SamplingParams

LETTERS = "abcdefghijklmno"
WATCHED = SamplingParams(max_tokens=60, ignore_eos=True)


def make_llm() -> LLM:
    model, small = (ScriptedModel(VOCABULARY, seed=3, memory=memory) for memory in (3, 2))
    drafter = ModelDrafter("small", small, context_length=512, vocabulary_size=VOCABULARY)
    return scripted_llm(model, LookupDrafter(), drafter, context_length=512)


def any_params(chance: random.Random) -> SamplingParams:
    if chance.random() < 0.5:
        return SamplingParams(max_tokens=chance.randint(1, 60), ignore_eos=True)
    return SamplingParams(temperature=0.8, seed=chance.randint(0, 9), max_tokens=chance.randint(1, 60), ignore_eos=True)


def any_prompt(chance: random.Random) -> str:
    return "".join(chance.choices(LETTERS, k=chance.choice([1, 5, 30, 300])))


@pytest.mark.parametrize("cache_bytes", [None, 700])
def test_500_requests_that_are_cancelled_at_any_time_leave_no_trace(cache_bytes: int | None) -> None:
    llm, clerk, chance = make_llm(), Clerk(), random.Random(8)
    expected = llm.generate("abcabcab", WATCHED, speculate=False).token_ids
    limits = SchedulerLimits(concurrent=6, waiting=20, cache_bytes=cache_bytes)
    with Scheduler(llm, limits, clerk) as scheduler:
        cancelled: list[int] = []
        watched: list[int] = []
        while len(cancelled) < 500:
            try:
                if len(watched) < len(cancelled) / 10:
                    watched.append(send(scheduler, "abcabcab", WATCHED))
                key = send(scheduler, any_prompt(chance), any_params(chance), chance.choice(["", "x"]))
            except QueueFullError:
                time.sleep(0.001)
                continue
            if chance.random() < 0.5:
                time.sleep(chance.random() * 0.01)
            scheduler.cancel(key)
            cancelled.append(key)
        clerk.wait_for(*watched)
        for key in watched:
            assert clerk.tokens(key) == expected
        eventually(lambda: scheduler.snapshot().reserved == 0)
        now = scheduler.snapshot()
        assert (now.running, now.waiting, now.requests_failed) == (0, 0, 0)
        assert now.requests_admitted == now.requests_finished + now.requests_cancelled == 500 + len(watched)
        assert now.requests_cancelled > 250
        held = sum(len(sequence.tokens) for sequence in llm._sequences._idle)
        assert now.cache_bytes_used == held
        for key in (*cancelled, *watched):
            scheduler.forget(key)
        eventually(lambda: not scheduler._batch._stats)
    assert not clerk.errors


@pytest.mark.parametrize("phase", ["waiting", "reading", "writing"])
def test_a_place_is_free_after_the_step_that_runs(phase: str) -> None:
    llm, clerk = make_llm(), Clerk()
    with Scheduler(llm, SchedulerLimits(concurrent=1, waiting=1), clerk) as scheduler:
        with clerk.holding() as held:
            first = send(scheduler, "abc", SamplingParams(max_tokens=400, ignore_eos=True))
            held()
            if phase == "writing":
                scheduler.cancel(first)
            else:
                second = send(scheduler, LETTERS * 30, WATCHED)
                scheduler.cancel(first if phase == "reading" else second)
        if phase == "reading":
            eventually(lambda: bool(scheduler._batch._live) and scheduler._batch._live[0].key == second)
            scheduler.cancel(second)
        begun = len(clerk.events.get(second, ())) if phase == "reading" else 0  # where this thread was slow
        steps = scheduler.snapshot().passes
        eventually(lambda: scheduler.snapshot().reserved == (1 if phase == "waiting" else 0))
        if phase != "waiting":
            assert scheduler.snapshot().passes <= steps + 1
        assert phase == "writing" or len(clerk.events.get(second, ())) == begun


def test_an_idle_scheduler_sleeps() -> None:
    with Scheduler(make_llm(), SchedulerLimits(), Clerk()) as scheduler:
        (thread,) = (thread for thread in threading.enumerate() if thread.name == "borrador-scheduler")
        assert thread is scheduler._thread
        used = time.process_time()
        time.sleep(0.5)
        assert time.process_time() - used < 0.25
        assert scheduler.snapshot().passes == 0


def test_cancelling_and_forgetting_what_is_not_there_does_nothing() -> None:
    clerk = Clerk()
    with Scheduler(make_llm(), SchedulerLimits(), clerk) as scheduler:
        scheduler.cancel(77)
        scheduler.forget(78)
        key = send(scheduler, "abc", WATCHED)
        clerk.wait_for(key)
        scheduler.cancel(key)
        assert scheduler.stats(key).completion_tokens == 60
        scheduler.forget(key)
        eventually(lambda: scheduler.stats(key).completion_tokens == 0)
        assert scheduler.snapshot().requests_cancelled == 0


def test_requests_come_from_many_threads() -> None:
    llm, clerk = make_llm(), Clerk()
    expected = [llm.generate(letter, WATCHED, speculate=False).token_ids for letter in LETTERS]
    keys: list[list[int]] = [[] for _ in LETTERS]

    def client(index: int) -> None:
        for _ in range(4):
            keys[index].append(send(scheduler, LETTERS[index], WATCHED, str(index % 3)))
            clerk.wait_for(keys[index][-1])
            scheduler.forget(keys[index][-1])

    with Scheduler(llm, SchedulerLimits(concurrent=4), clerk) as scheduler:
        threads = [threading.Thread(target=client, args=(index,)) for index in range(len(LETTERS))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [[clerk.tokens(key) for key in of_one] for of_one in keys] == [[each] * 4 for each in expected]
        eventually(lambda: not scheduler._batch._stats)


def test_a_request_can_be_submitted_with_what_was_prepared_elsewhere() -> None:
    llm, clerk = make_llm(), Clerk()
    prepared: list[Any] = []
    with Scheduler(llm, SchedulerLimits(), clerk) as scheduler:
        thread = threading.Thread(target=lambda: prepared.append(scheduler.prepare("abc", WATCHED, Drafting())))
        thread.start()
        thread.join()
        with scheduler.reserve() as reservation:
            key = scheduler.submit(prepared[0], reservation)
        clerk.wait_for(key)
