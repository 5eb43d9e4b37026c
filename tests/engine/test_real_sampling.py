"""Sampling parameters on a real model: with drafts the answer is what plain decoding writes, log probabilities too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.scripted import OracleDrafter

from borrador.config import EngineConfig
from borrador.engine.loading import open_parts
from borrador.types import SamplingParams

pytestmark = pytest.mark.real_model

TEXT = "A draft is cheap to write.\nA draft is quick to check.\nA draft is"
SAMPLINGS = (
    SamplingParams(repetition_penalty=1.15, max_tokens=40, logprobs=2),
    SamplingParams(temperature=0.7, top_p=0.9, frequency_penalty=0.2, penalty_window=-1, seed=3, max_tokens=40),
    SamplingParams(temperature=1.0, typical_p=0.9, logit_bias={28: 2.0}, seed=4, max_tokens=40, logprobs=0),
    SamplingParams(temperature=1.0, top_k=50, min_tokens=40, max_tokens=40, seed=5),
)


def test_drafts_change_neither_answers_nor_log_probabilities(model_path: Callable[[str], Path]) -> None:
    """The drafts are right for up to four tokens and then wrong."""
    answer: list[int] = []

    def mostly_right(context: Sequence[int]) -> Sequence[int]:
        done = len(context) - prompt_length
        return [*answer[done : done + done % 5], 0, 0]

    parts = open_parts(model_path("smollm2-135m"), EngineConfig(draft=("none",), context=512))
    with replace(parts, drafters=[OracleDrafter(mostly_right)]).assemble(draft_tokens=6) as llm:
        prompt_length = len(llm.tokenize(TEXT))
        for params in SAMPLINGS:
            plain = llm.generate(TEXT, params, speculate=False)
            answer[:] = plain.token_ids
            drafted = llm.generate(TEXT, params)
            assert drafted.token_ids == plain.token_ids
            assert drafted.logprobs == plain.logprobs
            assert 0 < drafted.stats.draft_tokens_accepted < drafted.stats.draft_tokens_tested
            assert len(plain.token_ids) >= params.min_tokens
