"""The most likely tokens of rows without their logits: what sorting the logits gives, bit by bit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.tiny_gguf import write_tiny_model

from borrador import _native
from borrador.models.gguf import TensorFormat
from borrador.models.native import NativeModel, NativeSequence
from borrador.models.scripted import ScriptedModel
from borrador.models.target import BestTokens, Rows
from borrador.types import Float32Array

TOKENS = [int(token) for token in np.random.default_rng(11).integers(0, 320, 300)]
# fmt: off
SHAPES: dict[str, dict[str, object]] = {
    "q6_k": {"architecture": "qwen2", "format": TensorFormat.Q4_K, "embedding_format": TensorFormat.Q6_K, "tied": True},
    "f16": {"architecture": "llama", "format": TensorFormat.F16, "width": 40, "heads": 5, "kv_heads": 5, "ffn": 72},
    "soft cap": {
        "architecture": "gemma2", "format": TensorFormat.Q8_0, "width": 64, "ffn": 96, "tied": True, "vocabulary": 1003,
        "metadata": {"gemma2.attention.sliding_window": 40, "gemma2.final_logit_softcapping": 0.5},
    },
}
# fmt: on


@pytest.fixture(params=sorted(SHAPES))
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return write_tiny_model(tmp_path / "tiny.gguf", **SHAPES[request.param])  # type: ignore[arg-type]


def by_sorting(logits: Float32Array, count: int) -> tuple[NDArray[np.int64], Float32Array]:
    """Ids and logits that `BestTokens` should hold."""
    known = np.where(np.isnan(logits), np.float32(-np.inf), logits)
    order = np.argsort(-known, axis=1, kind="stable")[:, :count]
    order = np.pad(order, ((0, 0), (0, count - order.shape[1])), constant_values=-1)
    best = np.where(order < 0, np.float32(-np.inf), np.take_along_axis(known, order, axis=1))
    best[np.isinf(best[:, 0])] = -np.inf
    return np.where(np.isinf(best), -1, order), best


def log_sum(logits: Float32Array) -> NDArray[np.float64]:
    found: NDArray[np.float64] = np.logaddexp.reduce(logits.astype(np.float64), axis=1)
    return found


def start(path: Path, threads: int = 2, past: int = 20) -> NativeSequence:
    sequence = NativeModel.load(path, threads=threads).open(512)
    sequence.forward(Rows.chain(TOKENS[:past], logits_from=past))
    sequence.commit(range(past))
    return sequence


def best_of_all(sequence: NativeSequence, together: int, past: int = 20) -> list[NDArray[np.generic]]:
    """Ids, logits and normalisers of every token behind the past, evaluated `together` at a time."""
    parts: list[BestTokens] = []
    for begin in range(past, len(TOKENS), together):
        rows = Rows.chain(TOKENS[begin : begin + together])
        parts.append(sequence.best(rows, 5, normalised=True))
        sequence.commit(range(len(rows.tokens)))
    return [np.concatenate([getattr(part, name) for part in parts]) for name in ("ids", "logits", "normalisers")]


@pytest.mark.parametrize("count", [1, 2, 17, 64])
def test_the_best_are_those_of_the_logits(path: Path, count: int) -> None:
    rows = Rows.chain(TOKENS[20:33], logits_from=2)
    sequence = start(path)
    logits = np.array(sequence.forward(rows))
    sequence.rewind(20)
    best = sequence.best(rows, count, normalised=True)
    ids, values = by_sorting(logits, count)
    np.testing.assert_array_equal(best.ids, ids)
    np.testing.assert_array_equal(best.logits, values)
    np.testing.assert_allclose(best.normalisers, log_sum(logits), rtol=3e-7, atol=1e-6)


def test_the_best_do_not_depend_on_rows_and_threads(path: Path) -> None:
    expected = best_of_all(start(path, threads=1), together=1)
    for threads, together in ((1, 280), (2, 7), (2, 280), (3, 64), (5, 8)):
        for found, right in zip(best_of_all(start(path, threads), together), expected, strict=True):
            np.testing.assert_array_equal(found, right)


def test_the_best_do_not_depend_on_the_instruction_set(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for isa in _native.available_isas():
        monkeypatch.setenv("BORRADOR_ISA", isa)
        found.append(best_of_all(start(path), together=40))
    for other in found[1:]:
        for one, first in zip(other, found[0], strict=True):
            np.testing.assert_array_equal(one, first)


@pytest.mark.parametrize("within", [1, 5, 127, 128, 129, 300])
def test_tokens_from_a_limit_on_are_as_good_as_none(path: Path, within: int) -> None:
    rows = Rows.chain(TOKENS[20:25])
    sequence = start(path)
    logits = np.array(sequence.forward(rows))[:, :within]
    sequence.rewind(20)
    best = sequence.best(rows, 6, within=within, normalised=True)
    ids, values = by_sorting(logits, 6)
    np.testing.assert_array_equal(best.ids, ids)
    np.testing.assert_array_equal(best.logits, values)
    np.testing.assert_allclose(best.normalisers, log_sum(logits), rtol=3e-7, atol=1e-6)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_equal_logits_stand_in_the_order_of_their_ids(tmp_path: Path, threads: int) -> None:
    once = np.random.default_rng(3).normal(size=(40, 64)).astype(np.float32)
    path = write_tiny_model(tmp_path / "tiny.gguf", width=64, tensors={"output.weight": np.tile(once, (8, 1))})
    rows = Rows.chain(TOKENS[20:30])
    ids = start(path, threads).best(rows, 20).ids
    first = ids[:, ::8][:, :3].repeat(8, axis=1)[:, :20]
    assert (first < 40).all()
    np.testing.assert_array_equal(ids, first + 40 * (np.arange(20) % 8))


@pytest.mark.parametrize("damaged", ["few NaN", "few infinite", "all NaN", "all but three infinite"])
def test_logits_that_are_not_finite_are_never_best(tmp_path: Path, damaged: str) -> None:
    weights = np.random.default_rng(4).normal(size=(320, 64)).astype(np.float32)
    weights[{"few NaN": slice(3, 320, 50), "few infinite": slice(3, 4)}.get(damaged, slice(None)), 0] = (
        np.nan if "NaN" in damaged else np.inf
    )
    if "three" in damaged:
        weights[[5, 140, 300]] = 1.0
    path = write_tiny_model(tmp_path / "tiny.gguf", width=64, tensors={"output.weight": weights})
    rows = Rows.chain(TOKENS[20:60])
    sequence = start(path)
    logits = np.array(sequence.forward(rows))
    sequence.rewind(20)
    best = sequence.best(rows, 4, normalised=True)
    ids, values = by_sorting(logits, 4)
    np.testing.assert_array_equal(best.ids, ids)
    np.testing.assert_array_equal(best.logits, values)
    unknown = ids[:, 0] < 0
    assert unknown.all() if damaged == "all NaN" else not unknown.all()
    np.testing.assert_array_equal(np.isnan(best.normalisers), unknown)
    known = np.where(np.isnan(logits), np.float32(-np.inf), logits)[~unknown]
    np.testing.assert_allclose(best.normalisers[~unknown], log_sum(known), rtol=3e-7, atol=1e-6)


def test_normalisers_are_given_where_they_are_asked_for(path: Path) -> None:
    assert start(path).best(Rows.chain([1, 2]), 1).normalisers.shape == (0,)
    assert start(path).best(Rows.chain([1, 2], logits_from=2), 3, normalised=True).ids.shape == (0, 3)


@pytest.mark.parametrize(("count", "within"), [(0, None), (65, None), (1, 0)])
def test_the_best_of_nothing_and_of_too_many_are_refused(path: Path, count: int, within: int | None) -> None:
    sequence = start(path)
    with pytest.raises(ValueError, match="best of no token"):
        sequence.best(Rows.chain([1]), count, within=within)
    assert sequence.length == 20


@pytest.mark.parametrize("within", [None, 3, 7])
def test_the_scripted_model_gives_the_same_of_its_own_logits(within: int | None) -> None:
    model = ScriptedModel(16, seed=9)
    rows = Rows.chain([1, 2, 3], logits_from=1)
    logits = model.open(8).forward(rows)[:, :within]
    best = model.open(8).best(rows, 5, within=within, normalised=True)
    ids, values = by_sorting(logits, 5)
    np.testing.assert_array_equal(best.ids, ids)
    np.testing.assert_array_equal(best.logits, values)
    np.testing.assert_allclose(best.normalisers, log_sum(logits), rtol=1e-6)
