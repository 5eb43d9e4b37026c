"""Where memory for keys and values is short, requests wait and make room; their answers stay what they are."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
from tests.batches import run, text_of, tokens_of
from tests.scripted import VOCABULARY, OracleDrafter, scripted_llm

from borrador.draft.lookup import LookupDrafter
from borrador.draft.model import ModelDrafter
from borrador.engine.batch import Batch
from borrador.engine.llm import LLM
from borrador.engine.requests import Drafting
from borrador.errors import MemoryLimitError
from borrador.models.scripted import ScriptedModel
from borrador.types import SamplingParams

GREEDY = SamplingParams(max_tokens=40, ignore_eos=True)
SEEDED = SamplingParams(temperature=0.8, seed=11, max_tokens=40, ignore_eos=True)
PROMPTS = ["abcdefgh", "cba" * 9, "o", "abcdefghij", "mnol" * 6, "hgfedc", "a" * 30, "lk"]


def make_llm(*drafters: Any, draft_tokens: int | None = 4) -> LLM:
    model = ScriptedModel(VOCABULARY, seed=3, memory=3)
    return scripted_llm(model, *drafters, context_length=256, draft_tokens=draft_tokens)


def small_model() -> ModelDrafter:
    return ModelDrafter("small", ScriptedModel(VOCABULARY, seed=3, memory=2), context_length=256, vocabulary_size=16)


def fill(llm: LLM, batch: Batch, params: Sequence[SamplingParams], prompts: Sequence[str] = PROMPTS) -> None:
    for key, prompt in enumerate(prompts):
        batch.add(key, llm.prepare(prompt, params[key % len(params)], Drafting()))


@pytest.mark.parametrize("limit", [72, 100, 150, 220, 440])
@pytest.mark.parametrize("drafting", ["none", "lookup", "model", "by costs"])
def test_answers_are_the_same_however_short_memory_is(limit: int, drafting: str) -> None:
    every: dict[str, list[Any]] = {
        "none": [],
        "lookup": [LookupDrafter()],
        "model": [small_model()],
        "by costs": [LookupDrafter(), small_model()],
    }
    llm = make_llm(*every[drafting], draft_tokens=None if drafting == "by costs" else 4)
    params = [GREEDY, SEEDED]
    alone = [llm.generate(prompt, params[index % 2], speculate=False) for index, prompt in enumerate(PROMPTS)]
    with llm.serve(8, limit) as batch:
        fill(llm, batch, params)
        events, errors = run(batch)
        preemptions = batch.census.preemptions
        assert not errors
        for key, completion in enumerate(alone):
            assert tokens_of(events[key]) == completion.token_ids
            assert text_of(events[key]) == completion.text
            stats = batch.stats(key)
            assert (stats.prompt_tokens, stats.completion_tokens) == (len(PROMPTS[key]), 40)
            assert stats.prompt_tokens_cached < stats.prompt_tokens
    assert (preemptions > 0) == (limit < 440)


def test_the_youngest_makes_room_and_goes_on_before_those_that_came_later() -> None:
    llm = make_llm()
    with llm.serve(8, 90) as batch:
        fill(llm, batch, [GREEDY], ["abcdefgh", "hgfedcba", "kkkkkkkk", "llllllll"])
        ends: list[int] = []
        while batch.is_busy:
            ends += [each.key for each in batch.step() if each.events and each.events[-1].finish_reason]
        assert batch.census.preemptions > 0
    assert ends == [0, 1, 2, 3]


def test_idle_sequences_and_drafts_make_way_before_requests_do() -> None:
    llm = make_llm(OracleDrafter(lambda context: [1, 2, 3, 4]))
    llm.generate("ijklmn" * 10, GREEDY)
    with llm.serve(8, 101) as batch:
        assert batch.cache_usage.used_bytes > 90
        fill(llm, batch, [GREEDY], ["abcdefgh", "hgfedcba"])
        events, errors = run(batch)
        assert [len(tokens_of(events[key])) for key in (0, 1)] == [40, 40]
        assert not errors
        assert batch.census.preemptions == 0


def test_a_request_that_does_not_fit_though_it_is_alone_fails_and_the_next_is_written() -> None:
    llm = make_llm()
    with llm.serve(4, 30) as batch:
        too_long = llm.prepare("abcdefgh", GREEDY, Drafting())
        with pytest.raises(MemoryLimitError, match=r"prompt and answer must fit .* 48 tokens do not"):
            batch.require_room(too_long)
        batch.add(1, too_long)
        batch.add(2, llm.prepare("abc", SamplingParams(max_tokens=5, ignore_eos=True), Drafting()))
        events, errors = run(batch)
        assert isinstance(errors.pop(1), MemoryLimitError)
        assert not errors
        assert len(tokens_of(events[1])) == 30 - 8 + 1
        assert len(tokens_of(events[2])) == 5
        batch.require_room(llm.prepare("abcde", SamplingParams(max_tokens=25), Drafting()))
    assert llm._model.cache_usage().limit_bytes is None


def test_a_request_waits_while_its_prompt_does_not_fit_beside_the_others() -> None:
    llm = make_llm()
    with llm.serve(4, 140) as batch:
        fill(llm, batch, [GREEDY], ["ab" * 20, "cd" * 20, "ef" * 20])
        batch.step()
        assert (batch.running, batch.waiting) == (2, 1)
        events, errors = run(batch)
        assert not errors
        assert {key: len(tokens_of(events[key])) for key in events} == {
            0: 39,
            1: 39,
            2: 40,
        }  # one each in the first step


def test_a_preempted_request_can_be_cancelled_and_can_run_out_of_time(monkeypatch: pytest.MonkeyPatch) -> None:
    drafter = OracleDrafter(lambda context: [1, 2])
    llm = make_llm(drafter)
    with llm.serve(4, 70) as batch:
        for key in range(3):
            batch.add(key, llm.prepare("abcdefgh"[key:], GREEDY, Drafting()), deadline=1e9 - key)
        while batch.census.preemptions < 2:
            batch.step()
        assert (batch.running, batch.waiting) == (1, 2)
        written = {key: batch.stats(key).completion_tokens for key in (1, 2)}
        assert batch.cancel(1)
        assert batch.stats(1).completion_tokens == written[1] > 0
        assert drafter.open_sessions == 2
        monkeypatch.setattr("borrador.engine.admission.time.monotonic", lambda: 1e9 - 1.5)
        told = {progress.key: progress for progress in batch.step()}
        monkeypatch.undo()
        assert [event.finish_reason for event in told[2].events] == ["timeout"]
        assert batch.stats(2).completion_tokens == written[2] > 0
        assert drafter.open_sessions == 1
        run(batch)
    assert drafter.open_sessions == 0


def test_memory_returns_to_what_idle_sequences_hold() -> None:
    llm, chance = make_llm(LookupDrafter()), random.Random(5)
    with llm.serve(6, 160) as batch:
        for key in range(60):
            prompt = "".join(chance.choices("abcdefghijklmno", k=chance.randint(1, 40)))
            batch.add(key, llm.prepare(prompt, GREEDY, Drafting()), namespace=chance.choice(["", "x", "y"]))
            for _ in range(chance.randint(0, 6)):
                batch.step()
            if chance.random() < 0.3:
                batch.cancel(chance.randint(0, key))
        run(batch)
        held = sum(len(sequence.tokens) for sequence in llm._sequences._idle)
        assert batch.cache_usage.used_bytes == held <= 160
        while llm._sequences.reclaim():
            pass
        assert batch.cache_usage.used_bytes == 0
