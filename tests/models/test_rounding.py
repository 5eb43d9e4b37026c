"""Draft models rounded to Q4_0 as they are loaded: which tensors, and to exactly which weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from numpy.typing import NDArray
from tests.reference import dequantize
from tests.tiny_gguf import random_matrix, write_tiny_model

from borrador import _native
from borrador.config import DraftWeights
from borrador.errors import MemoryLimitError
from borrador.models import weights
from borrador.models.gguf import GgufFile, TensorFormat
from borrador.models.native import NativeModel
from borrador.models.rounding import tensors_to_round
from borrador.models.target import Rows
from borrador.types import Float32Array

Q4_0 = TensorFormat.Q4_0
ROWS = 19
LAYER = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")


def rounded(values: Float32Array) -> Float32Array:
    """Q4_0 as ggml's reference makes it."""
    quantized = gguf.quants.quantize(values, gguf.GGMLQuantizationType.Q4_0)
    return np.asarray(gguf.quants.dequantize(quantized, gguf.GGMLQuantizationType.Q4_0), np.float32)


def kept_as_q4_0(data: NDArray[np.uint8], stored_as: TensorFormat, columns: int) -> Float32Array:
    rows = len(data) // (columns // stored_as.block_size * stored_as.block_bytes)
    return _native.dequantise(int(stored_as), rows, columns, data, int(Q4_0))


def as_bytes(values: Float32Array) -> NDArray[np.uint8]:
    return np.ascontiguousarray(values, np.float32).reshape(-1).view(np.uint8)


@pytest.mark.parametrize("stored_as", TensorFormat, ids=lambda f: f.name)
def test_every_format_is_rounded_as_the_reference_does(stored_as: TensorFormat) -> None:
    for columns in (256, 768) if stored_as.block_size == 256 else (32, 96, 256, 576):
        matrix = random_matrix(np.random.default_rng(columns), (ROWS, columns), stored_as, 1.0)
        data = np.ascontiguousarray(matrix).reshape(-1).view(np.uint8)
        expected = rounded(dequantize(data, stored_as).reshape(ROWS, columns))
        np.testing.assert_array_equal(kept_as_q4_0(data, stored_as, columns), expected)


@pytest.mark.parametrize(
    "group",
    [
        np.zeros(32),
        np.full(32, -0.0),
        np.full(32, 1e-9),
        np.full(32, 0.7),
        np.tile([2.0, -2.0], 16),
        np.tile([-2.0, 2.0], 16),
        np.linspace(-1.0, 7.0, 32),
        np.arange(-8.0, 24.0) - 7.5,
        np.r_[5e5, np.ones(31)],
    ],
    ids=["zeros", "minus zeros", "tiny", "equal", "tie", "other tie", "line", "halves", "almost too large"],
)
def test_groups_of_every_shape_are_rounded_as_the_reference_does(group: NDArray[np.float64]) -> None:
    values = group.astype(np.float32)[np.newaxis]
    np.testing.assert_array_equal(kept_as_q4_0(as_bytes(values), TensorFormat.F32, 32), rounded(values))


def test_subnormal_weights_become_zero() -> None:
    values = np.tile(np.array([1e-42, -3e-45], np.float32), 16)
    assert not kept_as_q4_0(as_bytes(values), TensorFormat.F32, 32).any()


def test_weights_beyond_half_precision_stay_finite_and_keep_their_signs() -> None:
    values = np.r_[np.full(16, 3e6), np.full(16, -3e6)].astype(np.float32)[np.newaxis]
    found = kept_as_q4_0(as_bytes(values), TensorFormat.F32, 32)
    assert np.isfinite(found).all()
    np.testing.assert_array_equal(np.sign(found), np.sign(values))


@pytest.mark.parametrize("kept", [int(TensorFormat.Q8_0), 999])
def test_no_other_format_is_rounded_to(kept: int) -> None:
    with pytest.raises(ValueError, match="format"):
        _native.dequantise(0, 1, 32, np.zeros(128, np.uint8), kept)


def test_rows_that_are_no_whole_blocks_cannot_be_rounded() -> None:
    with pytest.raises(ValueError, match="format"):
        _native.dequantise(0, 1, 40, np.zeros(160, np.uint8), int(Q4_0))


def chosen(path: Path, weights: DraftWeights) -> set[str]:
    """Roles of the tensors that are rounded, each in all layers or in none."""
    with GgufFile.open(path) as file:
        names = tensors_to_round(file, weights)
        layers = file.integer(f"{file.architecture}.block_count")
    roles = {name.removesuffix(".weight").split(".", 2)[-1] for name in names}
    assert len(names) == sum(layers if role in (*LAYER, "ffn_gate_exps") else 1 for role in roles)
    return roles


@pytest.mark.parametrize("stored_as", TensorFormat, ids=lambda f: f.name)
def test_formats_of_more_than_five_bits_are_rounded(stored_as: TensorFormat, tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "tiny.gguf", format=stored_as)
    wide = 8 * stored_as.block_bytes > 5 * stored_as.block_size
    assert chosen(path, "q4_0") == chosen(path, "auto") == ({*LAYER, "output"} if wide else set())
    assert chosen(path, "file") == set()


def test_embeddings_are_rounded_where_they_are_the_head(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "tiny.gguf", format=TensorFormat.Q8_0, tied=True)
    assert chosen(path, "auto") == {*LAYER, "token_embd"}


def test_odd_rows_stay_as_they_are(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "tiny.gguf", width=40, heads=5, kv_heads=5, ffn=96)
    assert chosen(path, "q4_0") == {"ffn_down"}


def test_what_saves_little_is_rounded_only_where_that_is_asked_for(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "tiny.gguf", format=TensorFormat.Q4_0, embedding_format=TensorFormat.Q5_0)
    assert (chosen(path, "auto"), chosen(path, "q4_0")) == (set(), {"output"})


def test_routers_stay_as_they_are(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "tiny.gguf", format=TensorFormat.Q8_0, experts=4, experts_used=2)
    with GgufFile.open(path) as file:
        names = tensors_to_round(file, "auto")
    assert "blk.0.ffn_down_exps.weight" in names
    assert not any("ffn_gate_inp" in name for name in names)


@pytest.fixture
def wide(tmp_path: Path) -> Path:
    return write_tiny_model(tmp_path / "wide.gguf", "qwen2", tied=True)


def logits(model: NativeModel) -> Float32Array:
    return np.array(model.open(64).forward(Rows.chain(range(40))))


@pytest.mark.parametrize(("architecture", "experts"), [("llama", 0), ("llama", 4), ("phi3", 0), ("qwen3moe", 4)])
def test_a_rounded_model_is_the_one_of_a_rounded_file(architecture: str, experts: int, tmp_path: Path) -> None:
    shape: dict[str, Any] = {"tied": True, "experts": experts, "experts_used": experts // 2}
    wide = write_tiny_model(tmp_path / "wide.gguf", architecture, **shape)
    narrow = write_tiny_model(tmp_path / "narrow.gguf", architecture, format=Q4_0, **shape)
    model = NativeModel.load(wide, threads=2, weights="auto")
    assert model.rounded_to == Q4_0
    np.testing.assert_array_equal(logits(model), logits(NativeModel.load(narrow, threads=1)))


def test_threads_change_no_rounded_weight(wide: Path) -> None:
    one, *others = (logits(NativeModel.load(wide, threads=threads, weights="q4_0")) for threads in (1, 2, 3))
    for other in others:
        np.testing.assert_array_equal(one, other)


def test_a_model_is_as_in_its_file_unless_something_else_is_asked_for(wide: Path) -> None:
    plain, narrow = NativeModel.load(wide), NativeModel.load(wide, weights="q4_0")
    assert plain.rounded_to is None
    assert not np.array_equal(logits(plain), logits(narrow))
    assert narrow.weights_bytes / plain.weights_bytes == 4.5 / 32


def test_a_rounded_model_needs_as_much_memory_as_one_of_a_rounded_file(
    wide: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    narrow = write_tiny_model(tmp_path / "narrow.gguf", "qwen2", format=Q4_0, tied=True)
    least = _least_memory(narrow, "file", monkeypatch)
    assert _least_memory(wide, "auto", monkeypatch) == least < _least_memory(wide, "file", monkeypatch)


def _least_memory(path: Path, kept: DraftWeights, monkeypatch: pytest.MonkeyPatch) -> int:
    """The least free memory in which a model is loaded, by bisection."""
    too_little, enough = 0, 1 << 28
    while enough - too_little > 1:
        free = (too_little + enough) // 2
        monkeypatch.setattr(weights, "available_bytes", lambda free=free: free)
        try:
            NativeModel.load(path, threads=1, weights=kept).close()
            enough = free
        except MemoryLimitError:
            too_little = free
    return enough
