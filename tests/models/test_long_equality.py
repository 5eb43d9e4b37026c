"""The long form of the promise of equal bits: ten thousand rewinds, and whole answers on every instruction set."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.tiny_gguf import write_tiny_model

import borrador
from borrador import SamplingParams, _native
from borrador.bench.prompts import load_prompts
from borrador.models.gguf import TensorFormat
from borrador.models.native import NativeModel, NativeSequence
from borrador.models.target import Rows

pytestmark = pytest.mark.long
VOCABULARY = 320


def extend(sequence: NativeSequence, tokens: list[int]) -> None:
    sequence.forward(Rows.chain(tokens, logits_from=len(tokens)))
    sequence.commit(range(len(tokens)))


@pytest.mark.parametrize("architecture", ["qwen2", "gemma3"])
def test_ten_thousand_random_rewinds_leave_the_cache_of_a_fresh_prefill(tmp_path: Path, architecture: str) -> None:
    path = write_tiny_model(tmp_path / "tiny.gguf", architecture, format=TensorFormat.Q8_0, width=64, ffn=64)
    model, random = NativeModel.load(path), np.random.default_rng(11)
    sequence, committed = model.open(512), [int(token) for token in random.integers(0, VOCABULARY, 24)]
    extend(sequence, committed)
    for step in range(10_000):
        kept = int(random.integers(max(1, len(committed) - 12), len(committed) + 1))
        sequence.rewind(kept)
        del committed[kept:]
        if kept > 400:
            sequence.rewind(16)
            del committed[16:]
        drafted = [int(token) for token in random.integers(0, VOCABULARY, int(random.integers(1, 12)))]
        sequence.forward(Rows.chain(drafted))
        accepted = int(random.integers(0, len(drafted) + 1))
        sequence.commit(range(accepted))
        committed += drafted[:accepted]
        if step % 10:
            continue
        probe = Rows.chain([7, 8, 9])
        found = np.array(sequence.forward(probe))
        sequence.rewind(len(committed))
        fresh = model.open(512)
        extend(fresh, committed)
        np.testing.assert_array_equal(found, fresh.forward(probe))


@pytest.mark.real_model
def test_instruction_sets_write_the_same_text_for_twenty_prompts(
    model_path: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, prompts = model_path("smollm2-135m"), load_prompts()[:20]
    answers: dict[str, list[tuple[int, ...]]] = {}
    for isa in _native.available_isas():
        monkeypatch.setenv("BORRADOR_ISA", isa)
        with borrador.load(path, draft="lookup") as llm:
            answers[isa] = [
                llm.generate([{"role": "user", "content": prompt.text}], SamplingParams(max_tokens=24)).token_ids
                for prompt in prompts
            ]
    first, *others = answers.values()
    assert len(first) == 20
    for other in others:
        assert other == first
