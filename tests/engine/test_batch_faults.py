"""Whatever a model or a drafter does wrong, only those suffer whose fault it is; the others' answers stay the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.batches import run, tokens_of
from tests.scripted import VOCABULARY, OracleDrafter, ids, scripted_llm

from borrador.draft.lookup import LookupDrafter
from borrador.engine.batch import Batch
from borrador.engine.llm import LLM
from borrador.engine.requests import Drafting
from borrador.errors import ModelError
from borrador.models.scripted import ScriptedModel, ScriptedTarget
from borrador.models.target import Rows
from borrador.types import Float32Array, SamplingParams

GREEDY = SamplingParams(max_tokens=30, ignore_eos=True)
SEEDED = SamplingParams(temperature=0.8, seed=4, max_tokens=30, ignore_eos=True)
PROMPTS = ["abc", "abcabcab", "mnol", "cba" * 9, "k" * 40]
GUILTY = "mnol"


def make_llm(*drafters: Any) -> LLM:
    return scripted_llm(ScriptedModel(VOCABULARY, seed=3, memory=3), *drafters)


def fill(llm: LLM, batch: Batch) -> None:
    for key, prompt in enumerate(PROMPTS):
        batch.add(key, llm.prepare(prompt, SEEDED if key % 2 else GREEDY, Drafting()))


def is_guilty(target: ScriptedTarget, rows: Rows) -> bool:
    return [*target.tokens, *rows.tokens.tolist()][:4] == ids(GUILTY)


def break_passes(
    patch: pytest.MonkeyPatch, breaks: Callable[[ScriptedTarget, Rows, int], bool], fault: Exception | float
) -> None:
    """Let passes over one sequence raise, or give logits of one value, where `breaks` says so of their number."""
    forward, count = ScriptedTarget.forward, 0

    def failing(target: ScriptedTarget, rows: Rows) -> Float32Array:
        nonlocal count
        count += 1
        logits = forward(target, rows)
        if not breaks(target, rows, count):
            return logits
        if isinstance(fault, Exception):
            raise fault
        return np.full_like(logits, fault)

    patch.setattr(ScriptedTarget, "forward", failing)


@pytest.mark.parametrize("drafter", [None, LookupDrafter(), OracleDrafter(lambda context: [1, 2, 3])])
@pytest.mark.parametrize("after", [0, 10])
@pytest.mark.parametrize("fault", [RuntimeError("x"), MemoryError(), float("nan"), float("inf")])
def test_a_request_that_the_model_cannot_evaluate_fails_alone(
    fault: Exception | float, after: int, drafter: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    llm = make_llm(*([drafter] if drafter else []))
    with llm.serve(8) as batch:
        fill(llm, batch)
        quiet, _ = run(batch)
    broken = make_llm(*([drafter] if drafter else []))
    with broken.serve(8) as batch:
        fill(broken, batch)
        break_passes(monkeypatch, lambda target, rows, _: is_guilty(target, rows) and target.length >= after, fault)
        events, errors = run(batch)
        monkeypatch.undo()
        assert list(errors) == [PROMPTS.index(GUILTY)]
        assert isinstance(errors[2], type(fault) if isinstance(fault, Exception) else ModelError)
        for key in range(len(PROMPTS)):
            written = tokens_of(events[key])
            assert written == tokens_of(quiet[key])[: len(written) if key == 2 else None]
        fill(broken, batch)
        again, errors = run(batch)
        assert not errors
        assert {key: tokens_of(again[key]) for key in again} == {key: tokens_of(quiet[key]) for key in quiet}


@pytest.mark.parametrize("number", [1, 7, 23, 60])
@pytest.mark.parametrize("fault", [RuntimeError("x"), MemoryError()])
def test_a_pass_that_fails_once_fails_nobody(fault: Exception, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    llm = make_llm(OracleDrafter(lambda context: [1, 2, 3]))
    with llm.serve(8) as batch:
        fill(llm, batch)
        quiet, _ = run(batch)
        fill(llm, batch)
        break_passes(monkeypatch, lambda _target, _rows, count: count == number, fault)
        events, errors = run(batch)
    assert not errors
    assert {key: tokens_of(events[key]) for key in events} == {key: tokens_of(quiet[key]) for key in quiet}


def test_a_model_that_is_broken_fails_all_and_the_next_requests_find_it_mended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    llm = make_llm()
    with llm.serve(8) as batch:
        fill(llm, batch)
        batch.step()
        break_passes(monkeypatch, lambda *_: True, RuntimeError("x"))
        _, errors = run(batch)
        assert sorted(errors) == [0, 1, 2, 3, 4]
        monkeypatch.undo()
        fill(llm, batch)
        events, errors = run(batch)
        assert not errors
        assert {len(tokens_of(events[key])) for key in events} == {30}


def test_a_drafter_that_cannot_be_closed_keeps_nobody_from_ending(monkeypatch: pytest.MonkeyPatch) -> None:
    drafter = OracleDrafter(lambda context: [1, 2, 3])
    llm = make_llm(drafter)

    def failing() -> None:
        raise ValueError("x")

    with llm.serve(8) as batch:
        fill(llm, batch)
        monkeypatch.setattr(drafter, "close", failing)
        events, errors = run(batch)
        monkeypatch.undo()
        assert not errors
        assert {len(tokens_of(events[key])) for key in events} == {30}
        held = sum(len(sequence.tokens) for sequence in llm._sequences._idle)
        assert batch.cache_usage.used_bytes == held


def test_drafting_that_fails_as_a_whole_costs_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    llm = make_llm(LookupDrafter())
    with llm.serve(8) as batch:
        fill(llm, batch)
        quiet, _ = run(batch)

    def failing(*_arguments: Any) -> None:
        raise ValueError("x")

    with llm.serve(8) as batch:
        fill(llm, batch)
        monkeypatch.setattr("borrador.engine.batch.Sharing.draft", failing)
        events, errors = run(batch)
        assert not errors
        assert batch.census.draft_rows == 0
    assert {key: tokens_of(events[key]) for key in events} == {key: tokens_of(quiet[key]) for key in quiet}
