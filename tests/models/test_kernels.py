"""The matmul of every format and instruction set against float64, and equal bits whatever shares the pass."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.reference import dequantize
from tests.tiny_gguf import random_matrix

from borrador import _native
from borrador.models.gguf import TensorFormat

FORMATS = list(TensorFormat)
ISAS = _native.available_isas()


def matrix_bytes(stored_as: TensorFormat, rows: int, columns: int, seed: int = 0) -> NDArray[np.uint8]:
    values = random_matrix(np.random.default_rng(seed), (rows, columns), stored_as, 1.0)
    return np.ascontiguousarray(values).reshape(-1).view(np.uint8)


def fitting_columns(stored_as: TensorFormat) -> tuple[int, ...]:
    """Row lengths that are and are not a multiple of 256, of 64 and of 32."""
    if stored_as.block_size == 256:
        return (256, 768)
    if stored_as.block_size == 32:
        return (32, 96, 256, 576)
    return (1, 17, 48, 256)


def quantised(x: NDArray[np.float32]) -> NDArray[np.float64]:
    """Activations as the kernels see them: int8, scales of 32 that are 1 to 127 times the scale of their 256."""
    one, most_value = np.float32(1), np.float32(127)
    padded = np.zeros((len(x), -(-x.shape[1] // 256) * 256), np.float32)
    padded[:, : x.shape[1]] = x
    groups = padded.reshape(len(x), -1, 8, 32)
    largest = np.abs(groups).max(-1, keepdims=True)
    most = largest.max(2, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        group_scales = np.clip(np.ceil(largest * np.where(most > 0, most_value / most, 0)), 1, 127)
        scales = (most * (one / (most_value * most_value))) * group_scales
        inverse = np.where(scales > 0, one / scales, np.float32(0))
    values: NDArray[np.float64] = np.rint(groups * inverse) * scales.astype(np.float64)
    return values.reshape(len(x), -1)[:, : x.shape[1]]


def tolerance(stored_as: TensorFormat) -> float:
    """Share of the sum of magnitudes: what float32 rounds, and the bits that sums of super-blocks are cut by."""
    return 3e-4 if stored_as.block_size == 256 else 1e-5


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("stored_as", FORMATS, ids=lambda f: f.name)
def test_products_agree_with_float64(stored_as: TensorFormat, isa: str) -> None:
    for columns in fitting_columns(stored_as):
        for rows, count in ((16, 1), (17, 17), (33, 5)):
            data = matrix_bytes(stored_as, rows, columns, seed=columns + rows)
            x = np.random.default_rng(count).standard_normal((count, columns)).astype(np.float32)
            weights = dequantize(data, stored_as).reshape(rows, columns).astype(np.float64)
            seen = x.astype(np.float64) if stored_as.block_size == 1 else quantised(x)
            expected = seen @ weights.T
            scale = np.abs(seen) @ np.abs(weights).T
            found = _native.multiply(isa, int(stored_as), rows, columns, data, x)
            assert np.isfinite(found).all()
            assert (np.abs(found - expected) <= tolerance(stored_as) * scale + 1e-6).all()


@pytest.mark.parametrize("stored_as", [f for f in FORMATS if f.block_size == 256], ids=lambda f: f.name)
def test_bits_that_sums_lose_leave_no_bias(stored_as: TensorFormat) -> None:
    data = matrix_bytes(stored_as, 48, 768, seed=3)
    x = np.random.default_rng(4).standard_normal((40, 768)).astype(np.float32)
    weights = dequantize(data, stored_as).reshape(48, 768).astype(np.float64)
    error = _native.multiply("", int(stored_as), 48, 768, data, x) - quantised(x) @ weights.T
    assert abs(error.mean()) < 0.5 * error.std()


@pytest.mark.parametrize("stored_as", FORMATS, ids=lambda f: f.name)
def test_instruction_sets_give_equal_bits(stored_as: TensorFormat) -> None:
    columns = fitting_columns(stored_as)[-1]
    data = matrix_bytes(stored_as, 40, columns)
    x = np.random.default_rng(1).standard_normal((11, columns)).astype(np.float32)
    first, *others = (_native.multiply(isa, int(stored_as), 40, columns, data, x) for isa in ISAS)
    for other in others:
        np.testing.assert_array_equal(first, other)


@pytest.mark.parametrize("stored_as", FORMATS, ids=lambda f: f.name)
def test_a_row_has_the_same_bits_whatever_other_rows_and_threads_share_the_pass(stored_as: TensorFormat) -> None:
    columns = fitting_columns(stored_as)[-1]
    data = matrix_bytes(stored_as, 48, columns)
    x = np.random.default_rng(2).standard_normal((64, columns)).astype(np.float32)
    alone = np.concatenate(
        [_native.multiply("", int(stored_as), 48, columns, data, x[i : i + 1]) for i in range(len(x))]
    )
    for count in (2, 3, 5, 8, 16, 64):
        for threads in (1, 2):
            together = _native.multiply("", int(stored_as), 48, columns, data, x[:count], threads)
            np.testing.assert_array_equal(together, alone[:count])


@pytest.mark.parametrize("stored_as", FORMATS, ids=lambda f: f.name)
def test_repacking_loses_nothing(stored_as: TensorFormat) -> None:
    columns = fitting_columns(stored_as)[-1]
    data = matrix_bytes(stored_as, 19, columns)
    found = _native.dequantise(int(stored_as), 19, columns, data)
    np.testing.assert_array_equal(found, dequantize(data, stored_as).reshape(19, columns))


# Where the half-precision scales of a block stand.
SCALE_BYTES: dict[TensorFormat, tuple[int, ...]] = {
    TensorFormat.Q4_0: (0,),
    TensorFormat.Q4_1: (0, 2),
    TensorFormat.Q5_0: (0,),
    TensorFormat.Q5_1: (0, 2),
    TensorFormat.Q8_0: (0,),
    TensorFormat.Q2_K: (80, 82),
    TensorFormat.Q3_K: (108,),
    TensorFormat.Q4_K: (0, 2),
    TensorFormat.Q5_K: (0, 2),
    TensorFormat.Q6_K: (208,),
    TensorFormat.IQ4_NL: (0,),
    TensorFormat.IQ4_XS: (0,),
}


@pytest.mark.parametrize("stored_as", SCALE_BYTES, ids=lambda f: f.name)
@pytest.mark.parametrize("filling", [0x00, 0x7F, 0x80, 0xFF])
def test_extreme_codes_and_activations_do_not_overflow(stored_as: TensorFormat, filling: int) -> None:
    columns = 256
    blocks = np.full((16 * columns // stored_as.block_size, stored_as.block_bytes), filling, np.uint8)
    for at in SCALE_BYTES[stored_as]:
        blocks[:, at : at + 2] = np.frombuffer(np.float16(1).tobytes(), np.uint8)
    weights = dequantize(blocks.reshape(-1), stored_as).reshape(16, columns).astype(np.float64)
    alternating = np.where(np.arange(columns) % 2, 127, -127)
    x = np.stack([np.full(columns, -127), np.full(columns, 127), alternating]).astype(np.float32)
    for isa in ISAS:
        found = _native.multiply(isa, int(stored_as), 16, columns, blocks.reshape(-1), x)
        magnitude = np.abs(x).astype(np.float64) @ np.abs(weights).T
        assert (np.abs(found - x.astype(np.float64) @ weights.T) <= tolerance(stored_as) * magnitude).all()


def test_every_scale_of_mxfp4_is_kept() -> None:
    blocks = np.full((255, 17), 0xA2, np.uint8)  # 1.0 and -1.0
    blocks[:, 0] = np.arange(255)
    found = _native.dequantise(int(TensorFormat.MXFP4), 255, 32, blocks.reshape(-1))
    np.testing.assert_array_equal(found, dequantize(blocks.reshape(-1), TensorFormat.MXFP4).reshape(255, 32))
    for isa in ISAS:
        x = np.eye(1, 32, 20, dtype=np.float32) * 127
        products = _native.multiply(isa, int(TensorFormat.MXFP4), 255, 32, blocks.reshape(-1), x)
        normal = slice(1, 248)  # 127 of it is within float32
        np.testing.assert_array_equal(products[0, normal], 127 * found[normal, 20])


def test_rows_of_zeros_give_zeros() -> None:
    data = matrix_bytes(TensorFormat.Q4_K, 16, 256)
    for isa in ISAS:
        found = _native.multiply(isa, int(TensorFormat.Q4_K), 16, 256, data, np.zeros((2, 256), np.float32))
        np.testing.assert_array_equal(found, np.zeros((2, 16), np.float32))


def test_a_wrong_size_is_refused() -> None:
    with pytest.raises(ValueError, match="fit together"):
        _native.multiply("", int(TensorFormat.Q4_K), 16, 256, np.zeros(7, np.uint8), np.zeros((1, 256), np.float32))
