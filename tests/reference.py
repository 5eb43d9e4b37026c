"""An independent reference: weights dequantised to float32 and a plain NumPy transformer.

Written from the formats' and models' descriptions, in the plainest way; of the engine under test nothing is used
but the file reader, which hands over raw bytes and metadata.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from borrador.models.gguf import GgufFile, TensorFormat

Float32 = NDArray[np.float32]
Bytes = NDArray[np.uint8]

_OUTPUT_ROWS_AT_ONCE = 16384


def reference_logits(path: Path, tokens: Sequence[int]) -> Float32:
    """Logits after every token of a sequence that starts at position 0.

    Layers are dequantised one at a time: 512 positions of a 1.5B model need about 2 GB.

    Returns:
        (tokens x vocabulary) float32.
    """
    with GgufFile.open(path) as file:
        return _Transformer(file).logits(np.asarray(tokens))


def kl_divergence(reference: Float32, logits: Float32) -> NDArray[np.float64]:
    """KL(reference || other) of the next-token distributions, in nats per position."""
    wanted, found = (_log_softmax(array.astype(np.float64)) for array in (reference, logits))
    divergence: NDArray[np.float64] = (np.exp(wanted) * (wanted - found)).sum(-1)
    return divergence


def read_matrix(file: GgufFile, name: str, rows: slice = slice(None)) -> Float32:
    """A tensor, or some of its rows, in float32: rows x row length, or one dimension for a vector."""
    tensor = file.tensors[name]
    raw = np.frombuffer(file.tensor_bytes(name), np.uint8).reshape(-1, _row_bytes(tensor.shape[0], tensor.format))
    values = dequantize(raw[rows].reshape(-1), tensor.format).reshape(-1, tensor.shape[0])
    return values if len(tensor.shape) > 1 else values[0]


def dequantize(data: Bytes, stored_as: TensorFormat) -> Float32:
    """The values of whole blocks, in order."""
    blocks = data.reshape(-1, stored_as.block_bytes)
    return _DEQUANTIZERS[stored_as](blocks).astype(np.float32).reshape(-1)


class _Transformer:
    """The decoder of `llama`, `qwen2`, `qwen3` and `gemma3`: RMS norms, rotary positions, grouped queries, gates."""

    def __init__(self, file: GgufFile) -> None:
        self._file = file
        self._family = file.architecture
        self._layers = file.integer(f"{self._family}.block_count")
        self._heads = file.integer(f"{self._family}.attention.head_count")
        self._kv_heads = file.integer(f"{self._family}.attention.head_count_kv", self._heads)
        width = file.integer(f"{self._family}.embedding_length")
        self._head_dim = file.integer(f"{self._family}.attention.key_length", width // self._heads)
        self._epsilon = file.number(f"{self._family}.attention.layer_norm_rms_epsilon")
        self._rope_base = file.number(f"{self._family}.rope.freq_base", 10000.0)
        self._rope_dim = file.integer(f"{self._family}.rope.dimension_count", self._head_dim)
        self._rope_factor = file.number(f"{self._family}.rope.scaling.factor", 1.0)
        self._window = file.integer(f"{self._family}.attention.sliding_window", 0)

    def logits(self, tokens: NDArray[np.int64]) -> Float32:
        hidden = self._embed(tokens)
        for layer in range(self._layers):
            block = f"blk.{layer}."
            attended = self._attention(self._norm(hidden, block + "attn_norm.weight"), layer)
            hidden = hidden + self._norm_if_any(attended, block + "post_attention_norm.weight")
            output = self._feed_forward(self._norm(hidden, block + "ffn_norm.weight"), layer)
            hidden = hidden + self._norm_if_any(output, block + "post_ffw_norm.weight")
        return self._output(self._norm(hidden, "output_norm.weight"))

    def _embed(self, tokens: NDArray[np.int64]) -> Float32:
        rows = [read_matrix(self._file, "token_embd.weight", slice(int(token), int(token) + 1)) for token in tokens]
        embedded = np.concatenate(rows)
        return embedded * np.float32(embedded.shape[1] ** 0.5) if self._family == "gemma3" else embedded

    def _is_local(self, layer: int) -> bool:
        """Five layers of Gemma 3 see a window and rotate faster, then one sees everything."""
        return self._family == "gemma3" and self._window > 0 and layer % 6 != 5

    def _attention(self, hidden: Float32, layer: int) -> Float32:
        count = len(hidden)
        queries, keys, values = (
            self._project(hidden, f"blk.{layer}.attn_{part}").reshape(count, -1, self._head_dim) for part in "qkv"
        )
        queries = self._norm_if_any(queries, f"blk.{layer}.attn_q_norm.weight")
        keys = self._norm_if_any(keys, f"blk.{layer}.attn_k_norm.weight")
        queries, keys = (self._rotate(vectors, self._is_local(layer)) for vectors in (queries, keys))
        hidden_positions = np.triu(np.full((count, count), -np.inf, np.float32), 1)
        if self._is_local(layer):
            hidden_positions += np.tril(np.full((count, count), -np.inf, np.float32), -self._window)
        attended = np.empty_like(queries)
        for head in range(self._heads):
            shared = head * self._kv_heads // self._heads
            scores = queries[:, head] @ keys[:, shared].T / np.float32(self._head_dim**0.5) + hidden_positions
            attended[:, head] = np.exp(_log_softmax(scores)) @ values[:, shared]
        return self._project(attended.reshape(count, -1), f"blk.{layer}.attn_output")

    def _feed_forward(self, hidden: Float32, layer: int) -> Float32:
        gate = self._project(hidden, f"blk.{layer}.ffn_gate")
        up = self._project(hidden, f"blk.{layer}.ffn_up")
        return self._project(self._activate(gate) * up, f"blk.{layer}.ffn_down")

    def _activate(self, gate: Float32) -> Float32:
        if self._family == "gemma3":
            return np.asarray(gate / 2 * (1 + np.tanh((2 / np.pi) ** 0.5 * (gate + 0.044715 * gate**3))), np.float32)
        return np.asarray(gate / (1 + np.exp(-gate)))

    def _output(self, hidden: Float32) -> Float32:
        name = "output.weight" if "output.weight" in self._file.tensors else "token_embd.weight"
        vocabulary = self._file.tensors[name].shape[1]
        logits = np.empty((len(hidden), vocabulary), np.float32)
        for start in range(0, vocabulary, _OUTPUT_ROWS_AT_ONCE):
            rows = slice(start, start + _OUTPUT_ROWS_AT_ONCE)
            logits[:, rows] = hidden @ read_matrix(self._file, name, rows).T
        self._file.release(name)
        return logits

    def _project(self, hidden: Float32, name: str) -> Float32:
        result = np.asarray(hidden @ read_matrix(self._file, f"{name}.weight").T)
        self._file.release(f"{name}.weight")
        if f"{name}.bias" in self._file.tensors:
            result += read_matrix(self._file, f"{name}.bias")
        return result

    def _norm(self, hidden: Float32, name: str) -> Float32:
        square = np.mean(hidden.astype(np.float64) ** 2, axis=-1, keepdims=True)
        normed: NDArray[np.float64] = hidden / np.sqrt(square + self._epsilon) * read_matrix(self._file, name)
        return normed.astype(np.float32)

    def _norm_if_any(self, hidden: Float32, name: str) -> Float32:
        return self._norm(hidden, name) if name in self._file.tensors else hidden

    def _rotate(self, vectors: Float32, is_local: bool) -> Float32:
        """Rotate each head's pairs by an angle that grows with the position and falls with the pair's index."""
        half = self._rope_dim // 2
        base, factor = (10000.0, 1.0) if is_local else (self._rope_base, self._rope_factor)
        frequencies = base ** (-np.arange(half) / half) / factor
        angles = np.arange(len(vectors))[:, None, None] * frequencies
        if self._family == "llama":  # neighbours are a pair
            first, second = slice(0, self._rope_dim, 2), slice(1, self._rope_dim, 2)
        else:  # the two halves are paired
            first, second = slice(0, half), slice(half, self._rope_dim)
        x, y = vectors[..., first], vectors[..., second]
        rotated: Float32 = vectors.copy()
        rotated[..., first] = x * np.cos(angles) - y * np.sin(angles)
        rotated[..., second] = x * np.sin(angles) + y * np.cos(angles)
        return rotated


def _log_softmax(scores: NDArray[Any]) -> NDArray[Any]:
    shifted = scores - scores.max(-1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(-1, keepdims=True)))


def _row_bytes(row_length: int, stored_as: TensorFormat) -> int:
    return row_length // stored_as.block_size * stored_as.block_bytes


def _halves(blocks: Bytes, start: int) -> Float32:
    """The float16 at a byte position of every block, as a column."""
    return np.ascontiguousarray(blocks[:, start : start + 2]).view("<f2").astype(np.float32)


def _nibbles(data: Bytes) -> Bytes:
    """Low nibbles of a group of bytes, then its high ones."""
    return np.concatenate([data & 15, data >> 4], axis=-1)


def _fifth_bits(blocks: Bytes, start: int) -> Bytes:
    """Bit i of a 32-bit mask is the fifth bit of element i."""
    bits = np.unpackbits(blocks[:, start : start + 4], axis=-1, bitorder="little")
    return np.asarray(bits << 4, np.uint8)


def _f32(blocks: Bytes) -> NDArray[Any]:
    return blocks.view("<f4")


def _f16(blocks: Bytes) -> NDArray[Any]:
    return blocks.view("<f2")


def _bf16(blocks: Bytes) -> NDArray[Any]:
    return (blocks.view("<u2").astype(np.uint32) << 16).view(np.float32)


def _q8_0(blocks: Bytes) -> NDArray[Any]:
    return _halves(blocks, 0) * blocks[:, 2:].view(np.int8)


def _q4_0(blocks: Bytes) -> NDArray[Any]:
    return _halves(blocks, 0) * (_nibbles(blocks[:, 2:]).astype(np.float32) - 8)


def _q4_1(blocks: Bytes) -> NDArray[Any]:
    return _halves(blocks, 0) * _nibbles(blocks[:, 4:]) + _halves(blocks, 2)


def _q5_0(blocks: Bytes) -> NDArray[Any]:
    quants = _nibbles(blocks[:, 6:]) | _fifth_bits(blocks, 2)
    return _halves(blocks, 0) * (quants.astype(np.float32) - 16)


def _q5_1(blocks: Bytes) -> NDArray[Any]:
    quants = _nibbles(blocks[:, 8:]) | _fifth_bits(blocks, 4)
    return _halves(blocks, 0) * quants + _halves(blocks, 2)


def _scales_and_minima(packed: Bytes) -> tuple[Float32, Float32]:
    """Eight 6-bit scales and eight 6-bit minima in 12 bytes: the later four borrow their top bits from the earlier."""
    first, second, third = packed[:, 0:4], packed[:, 4:8], packed[:, 8:12]
    scales = np.hstack([first & 63, (third & 15) | (first >> 6 << 4)])
    minima = np.hstack([second & 63, (third >> 4) | (second >> 6 << 4)])
    return scales.astype(np.float32), minima.astype(np.float32)


def _affine_k(blocks: Bytes, quants: NDArray[Any]) -> NDArray[Any]:
    """Q4_K and Q5_K: per group of 32, d * scale * quant - dmin * minimum."""
    scales, minima = _scales_and_minima(blocks[:, 4:16])
    steps, floors = _halves(blocks, 0) * scales, _halves(blocks, 2) * minima
    return np.asarray(steps[:, :, None] * quants - floors[:, :, None])


def _q4_k(blocks: Bytes) -> NDArray[Any]:
    quants = _nibbles(blocks[:, 16:].reshape(-1, 4, 32))
    return _affine_k(blocks, quants.reshape(-1, 8, 32))


def _q5_k(blocks: Bytes) -> NDArray[Any]:
    low = _nibbles(blocks[:, 48:].reshape(-1, 4, 32)).reshape(-1, 8, 32)
    group = np.arange(8, dtype=np.uint8)[:, None]
    high = blocks[:, None, 16:48] >> group & 1  # bit i of byte l belongs to element l of group i
    return _affine_k(blocks, low | high << 4)


def _q6_k(blocks: Bytes) -> NDArray[Any]:
    low = _nibbles(blocks[:, :128].reshape(-1, 2, 64)).reshape(-1, 2, 4, 32)
    shift = np.arange(0, 8, 2, dtype=np.uint8)[:, None]
    high = blocks[:, 128:192].reshape(-1, 2, 1, 32) >> shift & 3
    quants = (low | high << 4).reshape(-1, 16, 16).astype(np.float32) - 32
    return _halves(blocks, 208)[:, :, None] * blocks[:, 192:208].view(np.int8)[:, :, None] * quants


def _two_bits(data: Bytes) -> Bytes:
    """Bit pairs of 64 bytes as 16 groups of 16: 32 bytes hold 128 elements, 32 in bits 0-1 and so on."""
    shift = np.arange(0, 8, 2, dtype=np.uint8)[:, None]
    return np.asarray(data.reshape(-1, 2, 1, 32) >> shift & 3).reshape(-1, 16, 16)


def _q2_k(blocks: Bytes) -> NDArray[Any]:
    scales, minima = _halves(blocks, 80) * (blocks[:, :16] & 15), _halves(blocks, 82) * (blocks[:, :16] >> 4)
    return np.asarray(scales[:, :, None] * _two_bits(blocks[:, 16:80]) - minima[:, :, None])


def _q3_k(blocks: Bytes) -> NDArray[Any]:
    bit = np.arange(8, dtype=np.uint8)[:, None]
    high = (blocks[:, None, :32] >> bit & 1).reshape(-1, 16, 16)  # bit i of byte l belongs to element l of 32 i
    quants = (_two_bits(blocks[:, 32:96]) | high << 2).astype(np.float32) - 4
    pairs = np.arange(0, 8, 2, dtype=np.uint8)[:, None]
    top = (blocks[:, None, 104:108] >> pairs & 3).reshape(-1, 16)
    scales = (_nibbles(blocks[:, 96:104]) | top << 4).astype(np.float32) - 32
    return np.asarray((_halves(blocks, 108) * scales)[:, :, None] * quants)


_IQ4_LEVELS = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], np.float32)


def _iq4_nl(blocks: Bytes) -> NDArray[Any]:
    return _halves(blocks, 0) * _IQ4_LEVELS[_nibbles(blocks[:, 2:])]


def _iq4_xs(blocks: Bytes) -> NDArray[Any]:
    low = np.stack([blocks[:, 4:8] & 15, blocks[:, 4:8] >> 4], axis=-1).reshape(-1, 8)
    high = np.ascontiguousarray(blocks[:, 2:4]).view("<u2") >> np.arange(0, 16, 2, dtype=np.uint16) & 3
    scales = (low | high << 4).astype(np.float32) - 32
    levels = _IQ4_LEVELS[_nibbles(blocks[:, 8:].reshape(-1, 8, 16))]
    return np.asarray((_halves(blocks, 0) * scales)[:, :, None] * levels)


def _mxfp4(blocks: Bytes) -> NDArray[Any]:
    """E2M1 numbers (sign, two bits of exponent, one of fraction) times a power of two; OCP Microscaling formats 1.0."""
    magnitudes = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    levels = np.concatenate([magnitudes, -magnitudes])
    return np.asarray(np.ldexp(levels[_nibbles(blocks[:, 1:])], blocks[:, :1].astype(np.int32) - 127))


_DEQUANTIZERS: dict[TensorFormat, Callable[[Bytes], NDArray[Any]]] = {
    TensorFormat.F32: _f32,
    TensorFormat.F16: _f16,
    TensorFormat.BF16: _bf16,
    TensorFormat.Q8_0: _q8_0,
    TensorFormat.Q4_0: _q4_0,
    TensorFormat.Q4_1: _q4_1,
    TensorFormat.Q5_0: _q5_0,
    TensorFormat.Q5_1: _q5_1,
    TensorFormat.Q2_K: _q2_k,
    TensorFormat.Q3_K: _q3_k,
    TensorFormat.Q4_K: _q4_k,
    TensorFormat.Q5_K: _q5_k,
    TensorFormat.Q6_K: _q6_k,
    TensorFormat.IQ4_NL: _iq4_nl,
    TensorFormat.IQ4_XS: _iq4_xs,
    TensorFormat.MXFP4: _mxfp4,
}
