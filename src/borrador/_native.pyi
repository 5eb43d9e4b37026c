"""The extension module, written in C++."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from borrador.types import Float32Array, Int32Array, UInt32Array

# ruff: noqa: A002 (arguments are named as in the native code)
# cpu.h, memory.h: instruction sets are named worst first; bandwidth in bytes a second.
def available_isas() -> list[str]: ...
def usable_cores() -> int: ...
def read_bandwidth(threads: int, bytes: int, repeats: int = 5) -> float: ...

# weights.h: `format` is a GGML type number, `data` the tensor's bytes in the file. ValueError for a wrong size.
def packed_bytes(format: int, rows: int, columns: int) -> int: ...
def dequantise(format: int, rows: int, columns: int, data: NDArray[np.uint8]) -> Float32Array: ...
def multiply(
    isa: str, format: int, rows: int, columns: int, data: NDArray[np.uint8], x: Float32Array, threads: int = 1
) -> Float32Array: ...

# kv_cache.h, transformer.h: ValueError for arguments out of range; the caches are unchanged then.
class KvCache:
    @property
    def length(self) -> int: ...
    @property
    def capacity(self) -> int: ...
    @property
    def pending(self) -> int: ...
    def commit(self, path: Sequence[int]) -> None: ...
    def assume(self, length: int) -> None: ...
    def rewind(self, length: int) -> None: ...

class ModelShape:
    width: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn_width: int
    vocabulary: int
    norm_epsilon: float
    embedding_scale: float
    attention_scale: float
    attention_soft_cap: float
    logit_soft_cap: float
    experts: int
    experts_used: int
    expert_weights_normalised: bool
    expert_weights_scale: float
    rope_dim: int
    rope_interleaved: bool
    rope_magnitude: float
    rope_short_context: int
    def __init__(self, *, layers: int, ropes: int) -> None: ...
    def use_gelu(self) -> None: ...
    def set_rope(self, rope: int, base: float, scale: float) -> None: ...
    def set_layer(self, layer: int, window: int, rope: int) -> None: ...

class Transformer:
    def __init__(self, shape: ModelShape, *, arena_bytes: int, threads: int, isa: str) -> None: ...
    def load_matrix(
        self, layer: int, name: str, format: int, rows: int, columns: int, data: NDArray[np.uint8]
    ) -> None: ...
    def load_vector(self, layer: int, name: str, values: Float32Array) -> None: ...
    def finish_loading(self) -> None: ...
    @property
    def weights_bytes(self) -> int: ...
    @property
    def row_macs(self) -> int: ...
    def integer_peak(self) -> float: ...
    @property
    def threads(self) -> int: ...
    @property
    def isa(self) -> str: ...
    def make_cache(self, capacity: int) -> KvCache: ...
    def forward(
        self,
        caches: Sequence[KvCache],
        cache_of_row: Int32Array,
        tokens: Int32Array,
        parents: Int32Array,
        logit_rows: Int32Array,
    ) -> Float32Array: ...
    def forward_sequence(
        self, cache: KvCache, tokens: Int32Array, parents: Int32Array, logits_from: int
    ) -> Float32Array: ...
    def best_of_sequence(
        self,
        cache: KvCache,
        tokens: Int32Array,
        parents: Int32Array,
        logits_from: int,
        *,
        count: int,
        within: int,
        normaliser: bool,
    ) -> tuple[Int32Array, Float32Array, Float32Array]: ...
    def hidden(self, rows: int) -> Float32Array: ...

# sampler.h: `logits` are one row, or a matrix of them; ValueError where a row has no finite maximum. Masks have one bit
# per token, see row_edits.h, and are an IndexError where they are too short.
class Shape:
    def __init__(
        self,
        *,
        temperature: float,
        top_k: int,
        typical_p: float,
        top_p: float,
        min_p: float,
        repetition: float,
        presence: float,
        frequency: float,
        biased: Int32Array,
        biases: Float32Array,
        allowed: UInt32Array,
        isa: str = "",
    ) -> None: ...

def shape(
    logits: Float32Array, shape: Shape, window: Int32Array, barred: Int32Array, mask: UInt32Array | None
) -> tuple[Int32Array, Float32Array]: ...
def pick_likeliest(
    logits: Float32Array, shape: Shape, window: Int32Array, barred: Int32Array, mask: UInt32Array | None
) -> int: ...
def pick_seeded(
    logits: Float32Array,
    shape: Shape,
    window: Int32Array,
    barred: Int32Array,
    mask: UInt32Array | None,
    seed: int,
    position: int,
) -> int: ...
def argmax(logits: Float32Array) -> Int32Array: ...
def top_k(logits: Float32Array, k: int) -> tuple[Int32Array, Float32Array]: ...
def log_total(logits: Float32Array) -> float: ...
def uniform(seed: int, position: int, token: int) -> float: ...
def pick(weights: Float32Array, u: float) -> int: ...
