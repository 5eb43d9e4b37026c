"""Recycled successors on a real model: the answers of plain decoding, in fewer passes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import borrador
from borrador.types import SamplingParams

pytestmark = pytest.mark.real_model

PROMPT = "Write a short list of things that people do in spring, and say of each why people do it in spring."


@pytest.mark.parametrize(
    "params",
    [
        SamplingParams(max_tokens=80),
        SamplingParams(max_tokens=60, temperature=0.5, seed=3),
        SamplingParams(max_tokens=60, repetition_penalty=1.05, logprobs=2),
        SamplingParams(max_tokens=60, regex="([a-z ,]{1,60}\\.\n){2,5}"),
    ],
    ids=["greedy", "seeded", "shaped", "grammar"],
)
def test_recycled_trees_change_no_answer_and_save_passes(
    params: SamplingParams, model_path: Callable[[str], Path]
) -> None:
    with borrador.load(model_path("smollm2-135m"), "recycle", context=512, draft_tokens=8) as llm:
        plain = llm.generate([{"role": "user", "content": PROMPT}], params, speculate=False)
        with llm.stream([{"role": "user", "content": PROMPT}], params) as stream:
            events = list(stream)
        assert tuple(token for event in events for token in event.token_ids) == plain.token_ids
        assert tuple(event.logprobs for event in events if event.logprobs) == (plain.logprobs or ())
        trees = [event.record.draft for event in events if event.record and event.record.draft.parents]
        assert any(list(tree.parents or ()) != list(range(-1, len(tree.tokens) - 1)) for tree in trees)
        assert stream.stats.draft_tokens_accepted >= 8
        assert stream.stats.target_passes <= 0.9 * plain.stats.target_passes
