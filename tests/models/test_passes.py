"""A pass over several sequences: each gets what it gets alone, bit by bit, whatever the others are and want."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from tests.tiny_gguf import write_tiny_model

from borrador.errors import ContextLengthError, ModelError
from borrador.models.gguf import TensorFormat
from borrador.models.native import NativeModel, NativeSequence
from borrador.models.passes import Evidence, best_of, evaluate, evaluate_batch
from borrador.models.scripted import ScriptedModel
from borrador.models.target import BestTokens, Model, Rows, Target, Wanted

TOKENS = [int(token) for token in np.random.default_rng(5).integers(0, 320, 700)]
BEST, BEST_FIVE, LOGITS = Wanted(best=1), Wanted(best=5, normalised=True), Wanted()
# fmt: off
SHAPES: dict[str, dict[str, object]] = {
    "qwen2": {"architecture": "qwen2", "format": TensorFormat.Q4_K, "tied": True},
    "gemma2": {
        "architecture": "gemma2", "format": TensorFormat.Q5_0, "width": 64, "head_dim": 24, "ffn": 96, "tied": True,
        "metadata": {"gemma2.attention.sliding_window": 40, "gemma2.final_logit_softcapping": 5.0},
    },
    "qwen3moe": {
        "architecture": "qwen3moe", "format": TensorFormat.Q8_0, "width": 64, "ffn": 32,
        "experts": 6, "experts_used": 3,
    },
}
# fmt: on
Part = tuple[int, Rows, Wanted]  # tokens committed before, rows, and what is wanted of them


def tree(tokens: Sequence[int], pending: int) -> Rows:
    """Pending tokens as a chain, and below the last of them two branches of which the second forks."""
    root = pending - 1
    parents = [*range(-1, root), root, root, pending, pending + 1, pending + 1][: len(tokens)]
    return Rows(np.array(tokens, np.int32), np.array(parents, np.int32), root)


MIXED: list[Part] = [
    (40, Rows.chain(TOKENS[40:41]), BEST),
    (0, Rows.chain(TOKENS[:230], logits_from=230), BEST),
    (31, Rows.chain(TOKENS[31:36]), BEST_FIVE),
    (70, tree(TOKENS[70:76], 1), BEST),
    (17, tree(TOKENS[17:25], 3), BEST_FIVE),
    (9, Rows.chain(TOKENS[9:60], logits_from=50), BEST),
]
WITH_LOGITS: list[Part] = [*MIXED[:2], (55, tree(TOKENS[55:61], 1), LOGITS), *MIXED[2:], (3, MIXED[0][1], LOGITS)]


@pytest.fixture(params=sorted(SHAPES))
def model(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[NativeModel]:
    path = write_tiny_model(tmp_path / "tiny.gguf", layers=2, **SHAPES[request.param])  # type: ignore[arg-type]
    loaded = NativeModel.load(path, threads=2)
    yield loaded
    loaded.close()


def prefilled(model: Model, length: int) -> Target:
    sequence = model.open(800)
    if length:
        sequence.forward(Rows.chain(TOKENS[:length], logits_from=length))
        sequence.commit(range(length))
    return sequence


def as_arrays(evidence: Evidence) -> list[np.ndarray[tuple[int, ...], np.dtype[np.generic]]]:
    found = (evidence.ids, evidence.logits, evidence.normalisers) if isinstance(evidence, BestTokens) else (evidence,)
    return [np.array(array) for array in found]


def assert_equal(found: Evidence, expected: Evidence) -> None:
    assert type(found) is type(expected)
    for one, other in zip(as_arrays(found), as_arrays(expected), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("parts", [MIXED, WITH_LOGITS, WITH_LOGITS[::-1], MIXED[:1], WITH_LOGITS[2:3], MIXED[1:2] * 3])
def test_each_sequence_gets_what_it_gets_alone(model: NativeModel, parts: Sequence[Part]) -> None:
    batch = [(prefilled(model, length), rows) for length, rows, _ in parts]
    found = [as_arrays(one) for one in evaluate_batch(model, batch, [wanted for *_, wanted in parts])]
    for (sequence, rows), of_batch, (length, _, wanted) in zip(batch, found, parts, strict=True):
        alone = prefilled(model, length)
        expected = as_arrays(evaluate(alone, rows, wanted))
        assert len(expected[0]) == len(rows.tokens) - rows.logits_from
        if len(expected[0]):
            for one, other in zip(of_batch, expected, strict=True):
                np.testing.assert_array_equal(one, other)
        pending = rows.logits_from + 1 if rows.logits_from < len(rows.tokens) else len(rows.tokens)
        sequence.commit(range(pending))
        alone.commit(range(pending))
        after = Rows.chain(TOKENS[100:103])
        np.testing.assert_array_equal(np.array(sequence.forward(after)), alone.forward(after))


def test_batches_of_random_shapes_change_nothing(model: NativeModel) -> None:
    random = np.random.default_rng(2)
    expected: dict[tuple[int, int], np.ndarray[tuple[int, ...], np.dtype[np.float32]]] = {}
    for _ in range(8):
        parts = [(int(random.integers(0, 90)), int(random.integers(1, 9))) for _ in range(random.integers(2, 17))]
        batch = [(prefilled(model, n), Rows.chain(TOKENS[n : n + count])) for n, count in parts]
        for part, logits in zip(parts, model.forward(batch), strict=True):
            n, count = part
            if part not in expected:
                expected[part] = np.array(prefilled(model, n).forward(Rows.chain(TOKENS[n : n + count])))
                logits = model.forward(batch)[parts.index(part)]
            np.testing.assert_array_equal(logits, expected[part])


@pytest.mark.parametrize("wanted", [BEST, BEST_FIVE, Wanted(best=64, normalised=True)])
def test_the_best_of_logits_are_those_of_a_pass(model: NativeModel, wanted: Wanted) -> None:
    rows = Rows.chain(TOKENS[20:33])
    expected = evaluate(prefilled(model, 20), rows, wanted)
    assert_equal(best_of(prefilled(model, 20).forward(rows), wanted), expected)


def test_the_best_of_logits_that_are_not_finite() -> None:
    logits = np.array([[1, np.nan, 3, -np.inf], [0, np.inf, 0, 0], [-np.inf] * 4], np.float32)
    found = best_of(logits, BEST_FIVE)
    assert found.ids.tolist() == [[2, 0, -1, -1, -1], [-1] * 5, [-1] * 5]
    assert np.isnan(found.normalisers).tolist() == [False, True, True]


def test_a_scripted_model_keeps_the_contract_too() -> None:
    model = ScriptedModel(320, seed=2)
    batch = [(prefilled(model, length), rows) for length, rows, _ in WITH_LOGITS]
    found = evaluate_batch(model, batch, [wanted for *_, wanted in WITH_LOGITS])
    for one, (length, rows, wanted) in zip(found, WITH_LOGITS, strict=True):
        expected = evaluate(prefilled(model, length), rows, wanted)
        np.testing.assert_array_equal(as_arrays(one)[0], as_arrays(expected)[0])
    with pytest.raises(RuntimeError, match="stands twice"):
        model.forward([batch[0], batch[0]])


def test_a_pass_refuses_what_does_not_belong_to_it(model: NativeModel, tmp_path: Path) -> None:
    other = NativeModel.load(write_tiny_model(tmp_path / "other.gguf", layers=1))
    row = Rows.chain(TOKENS[:1])
    sequence = model.open(8)
    with pytest.raises(ModelError, match="sequences of one model"):
        model.forward([(sequence, row), (other.open(8), row)])
    with pytest.raises(ModelError, match="sequences of one model"):
        model.best([(ScriptedModel().open(8), row)], 1)
    with pytest.raises(ValueError, match="its own cache"):
        model.forward([(sequence, row), (sequence, row)])
    with pytest.raises(ContextLengthError, match="holds 8 tokens, and 9 were"):
        model.forward([(model.open(8), row), (sequence, Rows.chain(TOKENS[:9]))])
    beyond = Rows(np.array([1, 2], np.int32), np.array([-1, 2], np.int32))
    with pytest.raises(ValueError, match="parent must come before"):
        model.forward([(sequence, beyond), (model.open(8), row)])
    assert sequence.length == 0
    other.close()


@pytest.mark.parametrize("length", [0, 1, 63, 64, 65, 130, 300])
def test_a_copy_goes_on_as_its_source_would(model: NativeModel, length: int) -> None:
    source, copy = prefilled(model, 300), prefilled(model, 20)
    after = Rows.chain(TOKENS[310:314])
    copy.copy_from(source, length)
    assert (copy.length, source.length) == (length, 300)
    found = np.array(copy.forward(after))
    np.testing.assert_array_equal(found, prefilled(model, length).forward(after))
    copy.commit(range(2))
    np.testing.assert_array_equal(np.array(source.forward(after)), prefilled(model, 300).forward(after))


def test_a_copy_of_what_is_not_there_is_refused(model: NativeModel, tmp_path: Path) -> None:
    source, small = prefilled(model, 10), model.open(4)
    for target, length in ((small, 5), (source, 3), (prefilled(model, 2), 11)):
        with pytest.raises(ValueError, match="cannot copy"):
            target.copy_from(source, length)
    other = NativeModel.load(write_tiny_model(tmp_path / "other.gguf", layers=1))
    with pytest.raises(ModelError, match="sequences of one model"):
        small.copy_from(other.open(8), 0)
    assert isinstance(small, NativeSequence)
    with pytest.raises(ValueError, match="cannot copy"):
        small.cache.copy_from(other.open(8).cache, 0)
