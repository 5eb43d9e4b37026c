"""A scheduler writes what plain decoding writes, for whoever comes and goes."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest
from tests.batches import PATIENCE_S, Clerk, eventually, send
from tests.scripted import VOCABULARY, OracleDrafter, scripted_llm

from borrador.draft.lookup import LookupDrafter
from borrador.engine.llm import LLM
from borrador.engine.requests import Drafting
from borrador.engine.scheduler import Scheduler, SchedulerLimits
from borrador.errors import QueueFullError, UnavailableError, UsageError
from borrador.models.scripted import ScriptedModel
from borrador.types import SamplingParams

FREE = SamplingParams(max_tokens=30, ignore_eos=True)
SAMPLED = SamplingParams(temperature=0.8, seed=5, max_tokens=40, ignore_eos=True)
ENDLESS = SamplingParams(max_tokens=200, ignore_eos=True)


def make_llm(*drafters: Any, context_length: int = 256) -> LLM:
    return scripted_llm(ScriptedModel(VOCABULARY, seed=3, memory=3), *drafters, context_length=context_length)


def test_answers_are_those_of_plain_decoding_whenever_requests_come() -> None:
    llm, clerk = make_llm(LookupDrafter()), Clerk()
    prompts = ["abc", "abcabcab", "o", "mnopq", "cba" * 9, "a" * 40]
    every = [(prompt, params) for prompt in prompts for params in (FREE, SAMPLED)]
    expected = [llm.generate(prompt, params, speculate=False) for prompt, params in every]
    with Scheduler(llm, SchedulerLimits(concurrent=5), clerk) as scheduler:
        keys = [send(scheduler, prompt, params) for prompt, params in every]
        clerk.wait_for(*keys)
        for key, completion in zip(keys, expected, strict=True):
            assert clerk.tokens(key) == completion.token_ids
            assert "".join(event.text for event in clerk.events[key]) == completion.text
            assert scheduler.stats(key).completion_tokens == len(completion.token_ids)
        for key in keys:
            scheduler.forget(key)
        eventually(lambda: not scheduler._batch._stats)
    assert not clerk.errors


def test_numbers_balance() -> None:
    llm, clerk = make_llm(OracleDrafter(lambda context: [1, 2, 3])), Clerk()
    with Scheduler(llm, SchedulerLimits(concurrent=2), clerk) as scheduler:
        with clerk.holding() as held:
            keys = [send(scheduler, "abc", ENDLESS)]
            held()
            keys += [send(scheduler, "abc", ENDLESS) for _ in range(5)]
            scheduler.cancel(keys[0])
            scheduler.cancel(keys[5])
        clerk.wait_for(*keys[1:5])
        now = scheduler.snapshot()
    assert (now.requests_admitted, now.requests_finished, now.requests_cancelled, now.requests_failed) == (6, 4, 2, 0)
    assert (now.running, now.waiting, now.reserved, now.seats) == (0, 0, 0, 66)
    assert now.draft_tokens_proposed == now.draft_rows > 0
    fates = now.draft_tokens_accepted + now.draft_tokens_rejected + now.draft_tokens_ignored
    assert now.draft_tokens_proposed == fates
    assert now.completion_tokens >= 4 * 200


def test_a_seat_is_had_before_any_work_and_given_back_at_the_end() -> None:
    llm, clerk = make_llm(), Clerk()
    with Scheduler(llm, SchedulerLimits(concurrent=1, waiting=2), clerk) as scheduler:
        first, others = scheduler.reserve(), scheduler.reserve(2)
        with pytest.raises(QueueFullError, match="at most 3 requests may run or wait, 3 do") as refused:
            scheduler.reserve()
        assert refused.value.retry_after_s >= 1.0
        with pytest.raises(UsageError, match="from 1 to 3, got 4"):
            scheduler.reserve(4)
        others.release()
        others.release()
        request = scheduler.prepare("abc", FREE, Drafting())
        with pytest.raises(UsageError, match="reservation"):
            scheduler.submit(request, others)
        key = scheduler.submit(request, first)
        first.release()
        clerk.wait_for(key)
        eventually(lambda: scheduler.snapshot().reserved == 0)


def test_a_cancelled_request_is_told_of_no_more_and_frees_its_place() -> None:
    llm, clerk = make_llm(), Clerk()
    with Scheduler(llm, SchedulerLimits(concurrent=1), clerk) as scheduler:
        with clerk.holding() as held:
            first = send(scheduler, "abc", ENDLESS)
            held()
            second = send(scheduler, "bcd", FREE)
            scheduler.cancel(first)
        clerk.wait_for(second)
        assert len(clerk.tokens(first)) == 1
        assert clerk.tokens(second)


def test_an_answer_whose_time_is_over_ends_with_what_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    llm, clerk, now = make_llm(), Clerk(), 100.0
    clock = SimpleNamespace(monotonic=lambda: now, perf_counter=time.perf_counter)
    for module in ("admission", "batch", "scheduler"):
        monkeypatch.setattr(f"borrador.engine.{module}.time", clock)
    with Scheduler(llm, SchedulerLimits(concurrent=1), clerk) as scheduler:
        with clerk.holding() as held:
            long, late = send(scheduler, "abc", ENDLESS, deadline_s=9.0), send(scheduler, "bcd", FREE, deadline_s=5.0)
            held()
            now += 10.0
        clerk.wait_for(long, late)
        assert clerk.events[long][-1].finish_reason == clerk.events[late][-1].finish_reason == "timeout"
        assert 0 < len(clerk.tokens(long)) < 200
        assert clerk.tokens(late) == ()
        assert scheduler.stats(long).completion_tokens == len(clerk.tokens(long))
        assert scheduler.stats(late).prompt_tokens == 3
        assert scheduler.snapshot().requests_timed_out == 2


def test_nobody_else_writes_while_a_scheduler_does() -> None:
    llm = make_llm()
    stream = llm.stream("abc", FREE)
    next(stream)
    with pytest.raises(UsageError, match="another is unfinished"):
        Scheduler(llm, SchedulerLimits(), Clerk())
    stream.close()
    with Scheduler(llm, SchedulerLimits(), Clerk()):
        for refused in (
            lambda: llm.generate("abc"),
            lambda: llm.generate_many(["abc"]),
            lambda: Scheduler(llm, SchedulerLimits(), Clerk()),
            llm.close,
        ):
            with pytest.raises(UsageError, match="serves a scheduler"):
                refused()
    assert llm.generate("abc", FREE).token_ids
    llm.close()


def test_closing_lets_requests_end_within_the_grace_and_fails_the_others() -> None:
    clerk, llm = Clerk(), make_llm()
    scheduler = Scheduler(llm, SchedulerLimits(concurrent=1), clerk)
    key = send(scheduler, "abc", FREE)
    scheduler.close(grace_s=PATIENCE_S)
    assert clerk.has_ended(key)
    assert not clerk.errors
    with pytest.raises(UnavailableError, match="is shutting down"):
        scheduler.reserve()
    scheduler = Scheduler(llm, SchedulerLimits(concurrent=1), clerk)
    clerk.hook = lambda: time.sleep(0.1)  # three answers take a minute
    unfinished = [send(scheduler, "abc", ENDLESS) for _ in range(3)]
    scheduler.close(grace_s=0.05)
    assert [type(clerk.errors[key]) for key in unfinished] == [UnavailableError] * 3
    assert scheduler.snapshot().requests_failed == 3
    assert not scheduler.is_healthy


def test_a_thread_that_breaks_down_tells_everybody(monkeypatch: pytest.MonkeyPatch) -> None:
    llm, clerk = make_llm(), Clerk()
    scheduler = Scheduler(llm, SchedulerLimits(concurrent=2), clerk)

    def failing() -> Any:
        raise SystemError("x")

    with clerk.holding() as held:
        keys = [send(scheduler, "abc", ENDLESS)]
        held()
        keys += [send(scheduler, "abc", ENDLESS) for _ in range(4)]
        scheduler.cancel(keys.pop())
        monkeypatch.setattr(scheduler._batch, "step", failing)
    clerk.wait_for(*keys)
    assert {type(clerk.errors[key]) for key in keys} == {UnavailableError}
    with pytest.raises(UnavailableError, match="has failed"):
        scheduler.reserve()
    eventually(lambda: not scheduler._thread.is_alive())
    scheduler.close()
    now = scheduler.snapshot()
    assert (now.requests_admitted, now.requests_failed, now.requests_cancelled) == (5, 4, 1)
    assert (now.running, now.waiting, now.reserved, now.is_healthy) == (0, 0, 0, False)
    assert llm.generate("abc", FREE).token_ids


def test_a_listener_that_fails_stops_nobody() -> None:
    llm, clerk = make_llm(), Clerk()

    def fail_once() -> None:
        clerk.hook = lambda: None
        raise ValueError("x")

    with Scheduler(llm, SchedulerLimits(), clerk) as scheduler:
        clerk.hook = fail_once
        key = send(scheduler, "abc", FREE)
        clerk.wait_for(key)
        assert len(clerk.tokens(key)) == 29


def test_namespaces_take_turns() -> None:
    llm, clerk = make_llm(), Clerk()
    with Scheduler(llm, SchedulerLimits(concurrent=1), clerk) as scheduler:
        with clerk.holding() as held:
            running = send(scheduler, "abc", ENDLESS, "a")
            held()
            keys = {name: send(scheduler, "abc", FREE, name[0]) for name in ("a1", "a2", "a3", "b1", "b2", "c1")}
            scheduler.cancel(running)
        clerk.wait_for(*keys.values())
        order = sorted(keys.values(), key=list(clerk.events).index)
    names = {key: name for name, key in keys.items()}
    assert [names[key] for key in order] == ["a1", "b1", "c1", "a2", "b2", "a3"]


def test_what_is_learnt_is_kept_while_requests_are_served(monkeypatch: pytest.MonkeyPatch) -> None:
    llm, clerk, kept = make_llm(), Clerk(), list[bool]()
    monkeypatch.setattr(llm, "remember", lambda: kept.append(True))
    with Scheduler(llm, SchedulerLimits(), clerk) as scheduler:
        clerk.wait_for(send(scheduler, "abc", FREE))
        eventually(lambda: bool(kept))
