"""From the tensors of a GGUF file to weights in the layout of the kernels."""

from __future__ import annotations

import math
import os
from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from borrador import _native
from borrador.errors import MemoryLimitError, ModelError, UsageError
from borrador.models.config import ModelConfig
from borrador.models.gguf import GgufFile, TensorFormat, TensorInfo
from borrador.models.memory import available_bytes
from borrador.models.rounding import ROUNDED

_ARENA_ALIGNMENT = 64
_WORKING_BYTES = 64 << 20
_SAME_NAMES = (
    "width", "heads", "kv_heads", "head_dim", "ffn_width", "norm_epsilon", "embedding_scale", "attention_soft_cap",
    "logit_soft_cap", "experts", "experts_used", "expert_weights_normalised", "expert_weights_scale",
    "rope_dim", "rope_interleaved", "rope_magnitude", "rope_short_context",
)  # fmt: skip


def build_engine(
    file: GgufFile, config: ModelConfig, threads: int, rounded: Collection[str] = ()
) -> _native.Transformer:
    """An engine without weights yet.

    Args:
        file: whose weights it will have.
        config: the model's shape.
        threads: threads for the matrix work.
        rounded: names of tensors that will be rounded to `ROUNDED`.

    Raises:
        MemoryLimitError: weights, working space and the first tokens of a sequence do not fit into free memory.
        UsageError: `BORRADOR_ISA` names an instruction set that this machine lacks.
    """
    arena_bytes = sum(
        _packed_bytes(config, tensor, _kept_as(tensor, rounded))
        for tensor in file.tensors.values()
        if len(tensor.shape) > 1
    )
    shape = _shape(config)
    needed, available = arena_bytes + _WORKING_BYTES + shape.cache_chunk_bytes, available_bytes()
    if available is not None and needed > available:
        raise MemoryLimitError(
            f"{file.path.name} needs {needed / 1e9:.1f} GB of memory, and {available / 1e9:.1f} GB are free",
            "Close other programs, or use a smaller model.",
        )
    try:
        return _native.Transformer(shape, arena_bytes=arena_bytes, threads=threads, isa=_wanted_isa())
    except MemoryError as error:
        raise MemoryLimitError(
            f"{file.path.name} needs {needed / 1e9:.1f} GB of memory, which the system does not give",
            "Use a smaller model.",
        ) from error


def load_tensors(
    file: GgufFile, config: ModelConfig, engine: _native.Transformer, rounded: Collection[str] = ()
) -> None:
    """Repack the file's tensors into the engine, which was built for the same ones to be rounded.

    Raises:
        ModelError: their values are not allowed.
    """
    for name, shape in config.tensor_shapes():
        data = np.frombuffer(file.tensor_bytes(name), np.uint8)
        if len(shape) == 1:
            values = data.view(np.float32)
            if name in config.rope_factors and not (values > 0).all():
                raise ModelError(
                    f"{file.path.name}: all values of {name!r} must be above 0", "Download the file again."
                )
            engine.load_vector(*_place(name), values)
        else:
            tensor = file.tensors[name]
            _load_matrices(config, tensor, data, engine, _kept_as(tensor, rounded))
        del data
        file.release(name)
    engine.finish_loading()


def default_threads() -> int:
    """Threads of a model that is loaded without a number of them: the cores that this process may use."""
    return _native.usable_cores()


def default_isa() -> str:
    """The instruction set of models that are loaded now. Raises UsageError as `NativeModel.load` does."""
    return _wanted_isa() or _native.available_isas()[-1]


def _wanted_isa() -> str:
    wanted = os.environ.get("BORRADOR_ISA", "")
    known = _native.available_isas()
    if wanted and wanted not in known:
        raise UsageError(
            f"BORRADOR_ISA must be one of {', '.join(known)} on this machine, got {wanted!r}",
            "Unset it for the best one.",
        )
    return wanted


def _shape(config: ModelConfig) -> _native.ModelShape:
    shape = _native.ModelShape(layers=config.layers, ropes=2 if config.rope_local_base else 1)
    for name in _SAME_NAMES:
        setattr(shape, name, getattr(config, name))
    shape.vocabulary = config.vocabulary_size
    shape.attention_scale = config.attention_scale or 1 / math.sqrt(config.head_dim)
    if config.family.gelu:
        shape.use_gelu()
    shape.set_rope(0, config.rope_base, config.rope_freq_scale)
    if config.rope_local_base:
        shape.set_rope(1, config.rope_local_base, 1.0)
    for layer in range(config.layers):
        shape.set_layer(layer, config.window_of(layer), config.rope_of(layer))
    return shape


def _kept_as(tensor: TensorInfo, rounded: Collection[str]) -> TensorFormat:
    return ROUNDED if tensor.name in rounded else tensor.format


def _packed_bytes(config: ModelConfig, tensor: TensorInfo, kept: TensorFormat) -> int:
    sizes = (_native.packed_bytes(int(kept), rows, tensor.shape[0]) for _, rows in _matrices(config, tensor))
    return sum(-(-size // _ARENA_ALIGNMENT) * _ARENA_ALIGNMENT for size in sizes)


def _matrices(config: ModelConfig, tensor: TensorInfo) -> list[tuple[str, int]]:
    """Role and rows of the matrices that lie one behind the other in a tensor."""
    _, role = _place(tensor.name)
    queries, keys = config.heads * config.head_dim, config.kv_heads * config.head_dim
    if role == "attn_qkv":
        return [("attn_q", queries), ("attn_k", keys), ("attn_v", keys)]
    if role == "ffn_up" and config.family.fused:
        return [("ffn_gate", config.ffn_width), ("ffn_up", config.ffn_width)]
    if role.endswith("_exps"):
        return [(f"{role.removesuffix('_exps')}.{expert}", tensor.shape[1]) for expert in range(tensor.shape[2])]
    return [(role, tensor.shape[1])]


def _load_matrices(
    config: ModelConfig, tensor: TensorInfo, data: NDArray[np.uint8], engine: _native.Transformer, kept: TensorFormat
) -> None:
    layer, _ = _place(tensor.name)
    row_bytes = tensor.size_bytes * tensor.shape[0] // tensor.elements
    for role, rows in _matrices(config, tensor):
        here, data = data[: rows * row_bytes], data[rows * row_bytes :]
        engine.load_matrix(layer, role, int(tensor.format), rows, tensor.shape[0], here, kept=int(kept))


def _place(tensor: str) -> tuple[int, str]:
    """Layer (-1 outside the layers) and role of a tensor: `blk.3.attn_q.weight` is (3, attn_q)."""
    name = tensor.removesuffix(".weight")
    if not name.startswith("blk."):
        return -1, name
    _, layer, role = name.split(".", 2)
    return int(layer), role
