"""Logits of some tokens alone: those that all tokens' logits hold for them, bit by bit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.tiny_gguf import write_tiny_model

from borrador.models.gguf import TensorFormat
from borrador.models.native import NativeModel, NativeSequence
from borrador.models.scripted import ScriptedModel
from borrador.models.target import NarrowTarget, Rows, Shortlist
from borrador.types import Float32Array

VOCABULARY = 1003
TOKENS = [int(token) for token in np.random.default_rng(5).integers(0, VOCABULARY, 40)]
ORDER = [int(token) for token in np.random.default_rng(6).permutation(VOCABULARY)]
# fmt: off
SHAPES: dict[str, dict[str, object]] = {
    "f32": {"architecture": "llama", "format": TensorFormat.F32, "width": 40, "heads": 5, "kv_heads": 5, "ffn": 72},
    "f16": {"architecture": "llama", "format": TensorFormat.F16, "width": 40, "heads": 5, "kv_heads": 5, "ffn": 72},
    "soft cap": {
        "architecture": "gemma2", "format": TensorFormat.Q8_0, "width": 64, "ffn": 96, "tied": True,
        "metadata": {"gemma2.attention.sliding_window": 40, "gemma2.final_logit_softcapping": 0.5},
    },
}
# fmt: on
HEADS = ["q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q2_k", "q3_k", "q4_k", "q5_k", "q6_k", "bf16"]


def open_model(path: Path, **shape: object) -> NativeModel:
    return NativeModel.load(write_tiny_model(path / "tiny.gguf", vocabulary=VOCABULARY, **shape), threads=2)  # type: ignore[arg-type]


def start(model: NativeModel) -> NativeSequence:
    sequence = model.open(64)
    sequence.forward(Rows.chain(TOKENS[:10], logits_from=10))
    sequence.commit(range(10))
    return sequence


def masked(logits: Float32Array, tokens: list[int]) -> Float32Array:
    some = np.full_like(logits, -np.inf)
    some[:, tokens] = logits[:, tokens]
    return some


@pytest.fixture(params=[*SHAPES, *HEADS])
def model(request: pytest.FixtureRequest, tmp_path: Path) -> NativeModel:
    name = request.param
    if name in SHAPES:
        return open_model(tmp_path, **SHAPES[name])
    head = TensorFormat[name.upper()]
    return open_model(tmp_path, architecture="qwen2", format=TensorFormat.Q4_K, embedding_format=head, tied=True)


@pytest.mark.parametrize("count", [1, 15, 16, 17, 128, 129, 500])
def test_the_logits_of_a_shortlist_are_those_of_all_tokens(model: NativeModel, count: int) -> None:
    sequence, rows = start(model), Rows.chain(TOKENS[10:19], logits_from=2)
    everything = np.array(sequence.forward(rows))
    common, own = model.shortlist(ORDER[:count]), model.shortlist((), room=40)
    own.add(ORDER[count : count + 3])
    own.add(ORDER[count + 3 : count + 23])
    sequence.narrow((common, own))
    sequence.rewind(10)
    expected = masked(everything, ORDER[: count + 23])
    np.testing.assert_array_equal(sequence.forward(rows), expected)
    sequence.rewind(10)
    best = sequence.best(rows, min(count, 20), normalised=True)
    order = np.argsort(-expected, axis=1, kind="stable")[:, : min(count, 20)]
    np.testing.assert_array_equal(best.ids, order)
    np.testing.assert_array_equal(best.logits, np.take_along_axis(expected, order, axis=1))
    total = np.logaddexp.reduce(expected.astype(np.float64), axis=1)
    np.testing.assert_allclose(best.normalisers, total, rtol=3e-7, atol=1e-6)


def test_an_empty_list_beside_another_adds_nothing_and_none_at_all_gives_everything(model: NativeModel) -> None:
    sequence, rows = start(model), Rows.chain(TOKENS[10:12])
    everything = np.array(sequence.forward(rows))
    sequence.rewind(10)
    sequence.narrow((model.shortlist(ORDER[:30]), model.shortlist((), room=5)))
    np.testing.assert_array_equal(sequence.forward(rows), masked(everything, ORDER[:30]))
    sequence.rewind(10)
    sequence.narrow(())
    np.testing.assert_array_equal(sequence.forward(rows), everything)


def test_many_rows_and_one_row_give_the_same_best_of_a_shortlist(tmp_path: Path) -> None:
    model = open_model(tmp_path, architecture="qwen2", format=TensorFormat.Q4_K, tied=True, width=256, ffn=256)
    sequence = start(model)
    sequence.narrow((model.shortlist(sorted(ORDER[:300])), model.shortlist(ORDER[300:310])))
    together = sequence.best(Rows.chain(TOKENS[10:40]), 3, normalised=True)
    sequence.rewind(10)
    for index in range(30):
        alone = sequence.best(Rows.chain([TOKENS[10 + index]]), 3, normalised=True)
        sequence.commit([0])
        found: NDArray[np.generic]
        for found, right in zip(
            (alone.ids, alone.logits, alone.normalisers),
            (together.ids[index], together.logits[index], together.normalisers[index : index + 1]),
            strict=True,
        ):
            np.testing.assert_array_equal(np.atleast_1d(np.squeeze(found)), np.atleast_1d(right))


def test_sequences_of_one_pass_have_their_own_lists(model: NativeModel) -> None:
    """Each gets what its own pass gives, bit by bit, whatever the others may propose: one of them anything."""
    common = model.shortlist(ORDER[:200])
    lists = [(common, own_list(model, ORDER[200:203])), (), (common, own_list(model, ORDER[203:340])), (common,)]
    batch = []
    for index, of_one in enumerate(lists):
        sequence = start(model)
        sequence.narrow(of_one)
        batch.append((sequence, Rows.chain(TOKENS[10 + index : 13 + 2 * index], logits_from=index)))
    expected: list[list[NDArray[np.generic]]] = [[np.array(sequence.forward(rows))] for sequence, rows in batch]
    for (sequence, rows), found in zip(batch, expected, strict=True):
        sequence.rewind(10)
        best = sequence.best(rows, 5, normalised=True)
        found += [best.ids, best.logits, best.normalisers]
        sequence.rewind(10)
    for logits, found in zip(model.forward(batch), expected, strict=True):
        np.testing.assert_array_equal(logits, found[0])
    for best, (_, *found) in zip(model.best(batch, 5, normalised=True), expected, strict=True):
        for part, right in zip((best.ids, best.logits, best.normalisers), found, strict=True):
            np.testing.assert_array_equal(part, right)


def own_list(model: NativeModel, tokens: Sequence[int]) -> Shortlist:
    own = model.shortlist((), room=len(tokens))
    own.add(tokens)
    return own


def test_what_a_shortlist_cannot_hold_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    model = open_model(tmp_path, architecture="llama", format=TensorFormat.Q8_0, width=64, ffn=96)
    shortlist = model.shortlist([4, 7], room=2)
    for wrong in ([-1], [VOCABULARY], [7], [9, 9]):
        with pytest.raises(ValueError, match="lacks, or twice"):
            shortlist.add(wrong)
    with pytest.raises(ValueError, match="room for"):
        shortlist.add([1, 2, 3])
    shortlist.add([1, 2])
    assert len(shortlist) == 4
    sequence = start(model)
    sequence.narrow((shortlist,))
    assert set(np.flatnonzero(np.isfinite(sequence.forward(Rows.chain([5]))[0]))) == {1, 2, 4, 7}


def test_lists_that_a_pass_cannot_use_are_refused(tmp_path: Path) -> None:
    model = open_model(tmp_path, architecture="llama", format=TensorFormat.Q8_0, width=64, ffn=96)
    (tmp_path / "other").mkdir()
    other = open_model(tmp_path / "other", architecture="llama", format=TensorFormat.Q8_0, width=64, ffn=96)
    sequence = start(model)
    for lists, said in (
        ([model.shortlist((), room=3)], "of no token"),
        ([other.shortlist([1])], "another model"),
    ):
        sequence.narrow(lists)
        with pytest.raises(ValueError, match=said):
            sequence.forward(Rows.chain([5]))
    sequence.narrow((model.shortlist([3, 900]),))
    with pytest.raises(ValueError, match="beyond the limit"):
        sequence.best(Rows.chain([5]), 1, within=900)
    assert sequence.best(Rows.chain([5]), 1, within=901).ids[0, 0] in (3, 900)
    with pytest.raises(TypeError, match="another kind"):
        sequence.narrow((ScriptedModel().shortlist([1]),))


def test_the_scripted_model_is_narrowed_alike() -> None:
    model = ScriptedModel(16, seed=9)
    target = model.open(8)
    assert isinstance(target, NarrowTarget)
    target.narrow((model.shortlist([3, 9]), model.shortlist([11])))
    (logits,) = target.forward(Rows.chain([1]))
    np.testing.assert_array_equal(logits, masked(model.logits_after([1])[None], [3, 9, 11])[0])
    assert target.best(Rows.chain([1]), 4).ids[0, 3] == -1
