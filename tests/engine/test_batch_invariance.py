"""A request's tokens do not depend on what is in the batch with it: bit for bit, by the native arithmetic."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from tests.batches import run, tokens_of
from tests.tiny_gguf import write_tiny_model

from borrador.config import EngineConfig
from borrador.draft.lookup import LookupDrafter
from borrador.engine.batch import Batch
from borrador.engine.llm import LLM
from borrador.engine.loading import Parts, open_parts
from borrador.engine.requests import Drafting
from borrador.types import GenerationEvent, SamplingParams

PROMPT = "one two three, one two three, " * 5
GREEDY = SamplingParams(max_tokens=24, ignore_eos=True, logprobs=2)
SEEDED = SamplingParams(temperature=0.8, seed=7, max_tokens=24, ignore_eos=True, logprobs=2)
NEIGHBOURS = ["a", "something else", "q" * 200, PROMPT[:80], PROMPT + "!", "xyz" * 30, "one two"]
Written = tuple[Any, ...]


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parts]:
    path = write_tiny_model(tmp_path_factory.mktemp("models") / "tiny.gguf", context=512, sharpness=2.0)
    opened = open_parts(path, EngineConfig(draft=("none",), threads=1, profile=False))
    yield opened
    opened.close()


@pytest.fixture(params=["plain", "lookup"])
def llm(request: pytest.FixtureRequest, parts: Parts) -> LLM:
    return replace(parts, drafters=(LookupDrafter(),) if request.param == "lookup" else ()).assemble(4)


def written(events: list[GenerationEvent]) -> Written:
    return tokens_of(events), [event.logprobs for event in events]


def alone(llm: LLM, params: SamplingParams) -> Written:
    answer = written(list(llm.stream(PROMPT, params, speculate=False)))
    while llm._sequences.reclaim():
        pass
    return answer


def add(llm: LLM, batch: Batch, key: int, prompt: str, params: SamplingParams) -> None:
    batch.add(key, llm.prepare(prompt, params, Drafting()))


@pytest.mark.parametrize("params", [GREEDY, SEEDED])
@pytest.mark.parametrize("neighbours", range(1, 8))
@pytest.mark.parametrize("behind", [False, True])
def test_neighbours_change_nothing(llm: LLM, params: SamplingParams, neighbours: int, behind: bool) -> None:
    expected = alone(llm, params)
    with llm.serve(8) as batch:
        if not behind:
            add(llm, batch, 0, PROMPT, params)
        for key, prompt in enumerate(NEIGHBOURS[:neighbours], 1):
            add(llm, batch, key, prompt, GREEDY if key % 2 else replace(SEEDED, seed=key))
        if behind:
            batch.step()
            add(llm, batch, 0, PROMPT, params)
        events, errors = run(batch)
    assert not errors
    assert written(events[0]) == expected


@pytest.mark.parametrize("params", [GREEDY, SEEDED])
def test_neighbours_that_are_cancelled_while_they_read_change_nothing(llm: LLM, params: SamplingParams) -> None:
    expected = alone(llm, params)
    with llm.serve(8) as batch:
        add(llm, batch, 1, PROMPT + "?", GREEDY)  # the one after it waits for what they share
        add(llm, batch, 0, PROMPT, params)
        add(llm, batch, 2, "z" * 400, GREEDY)
        batch.step()
        assert [member.is_reading for member in batch._live] == [False, True, True]
        assert batch.cancel(2)
        add(llm, batch, 3, PROMPT + "z" * 300, GREEDY)
        early = [event for progress in batch.step() if progress.key == 0 for event in progress.events]
        assert [member.is_reading for member in batch._live] == [False, False, True]
        assert batch.cancel(1)
        assert batch.cancel(3)
        events, errors = run(batch)
    assert not errors
    assert written(early + events[0]) == expected


@pytest.mark.parametrize("params", [GREEDY, SEEDED])
@pytest.mark.parametrize("rows", [1, 3, 16, 17, 100])
def test_the_pieces_in_which_a_prompt_is_read_change_nothing(
    llm: LLM, params: SamplingParams, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = alone(llm, params)
    monkeypatch.setattr("borrador.engine.reading.ReadingPace.rows", lambda *_: rows)
    with llm.serve(8) as batch:
        add(llm, batch, 1, "abc", GREEDY)
        add(llm, batch, 0, PROMPT, params)
        events, errors = run(batch)
    assert not errors
    assert written(events[0]) == expected


@pytest.mark.parametrize("params", [GREEDY, SEEDED])
def test_making_room_in_the_middle_changes_nothing(llm: LLM, params: SamplingParams) -> None:
    expected = alone(llm, params)
    with llm.serve(8) as batch:
        add(llm, batch, 1, "abc", replace(GREEDY, max_tokens=200))
        batch.step()
        add(llm, batch, 2, PROMPT, params)
        found: list[GenerationEvent] = []
        while not found:  # in how many steps the prompt is read depends on how long they take
            found += [event for progress in batch.step() if progress.key == 2 for event in progress.events]
        while batch._make_room() and not batch.waiting:
            pass
        assert (batch.running, batch.waiting) == (1, 1)
        events, errors = run(batch)
        assert not errors
        assert written(found + events[2]) == expected
        assert batch.stats(2).completion_tokens == 24
