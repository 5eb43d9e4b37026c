"""Hugging Face models with the weights of a tiny GGUF file: a reference that shares nothing with the engine.

Queries, keys and values are rounded to 16-bit integers, as the engine's attention takes them: that alone changes logits
of deviation 1 by up to 0.005. What stands in the way is undone here as the file's writer does it: llama's rotary pairs
are neighbours in GGUF, and Gemma's norms contain the 1 that transformers adds.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from numpy.typing import NDArray
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.masking_utils import eager_mask

from borrador.types import Float32Array

_NAMES = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_qkv": "self_attn.qkv_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "ffn_gate_inp": "mlp.gate",
    "ffn_down_exps": "mlp.experts.down_proj",
}
_SANDWICH_NAMES = {
    "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
}


INTEGER_CACHE = "integer_cache"


def _rounded(vectors: torch.Tensor, most: float, most_norm: float = float("inf")) -> torch.Tensor:
    """Multiples of each vector's unit: the least that keeps every integer and the norm of all within the bounds."""
    unit = torch.maximum(
        vectors.abs().amax(-1, keepdim=True) / most, torch.linalg.vector_norm(vectors, dim=-1, keepdim=True) / most_norm
    )
    return torch.where(unit > 0, (vectors / unit).round() * unit, vectors)


def _attend_to_integer_cache(
    module: torch.nn.Module, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: Any, **options: Any
) -> Any:
    """The model's own eager attention, on vectors rounded as the engine's."""
    attend = sys.modules[type(module).__module__].eager_attention_forward
    query, key = (_rounded(vectors, 16383, 46300) for vectors in (query, key))
    return attend(module, query, key, _rounded(value, 8191), mask, **options)


AttentionInterface.register(INTEGER_CACHE, _attend_to_integer_cache)
AttentionMaskInterface.register(INTEGER_CACHE, eager_mask)


def transformers_logits(model: PreTrainedModel, path: Path, tokens: list[int]) -> Float32Array:
    """Logits after every token, of a model that takes its weights, in float32, from a file."""
    reader = gguf.GGUFReader(path)
    family = reader.fields["general.architecture"].contents()
    tensors = {item.name: np.array(gguf.quants.dequantize(item.data, item.tensor_type)) for item in reader.tensors}
    state = {name: torch.from_numpy(data) for name, data in _named(family, model.config, tensors)}
    missing, unexpected = model.load_state_dict(state, strict=False)
    assert not unexpected
    assert [name for name in missing if name != "lm_head.weight"] == []
    model.tie_weights()
    with torch.no_grad():
        logits: Float32Array = model.eval()(torch.tensor([tokens])).logits[0].numpy()
    return logits


def _named(
    family: str, config: Any, tensors: dict[str, NDArray[np.float32]]
) -> Iterator[tuple[str, NDArray[np.float32]]]:
    names = (
        _NAMES
        | (_SANDWICH_NAMES if family.startswith("gemma") else {})
        | ({"ffn_up": "mlp.gate_up_proj"} if family == "phi3" else {})
    )
    for name, data in tensors.items():
        *block, role, kind = name.rsplit(".", 2) if name.startswith("blk") else ("", *name.rsplit(".", 1))
        prefix = block[0].replace("blk.", "model.layers.") + "." if block[0] else ""
        if role.startswith("rope_"):
            continue
        if family in ("llama", "smollm3") and role in ("attn_q", "attn_k"):
            data = _halves(data, config.num_attention_heads if role == "attn_q" else config.num_key_value_heads)
        if family.startswith("gemma") and role.endswith("norm"):
            data = data - 1
        if role == "ffn_gate_exps":
            up = tensors[name.replace("gate", "up")]
            yield f"{prefix}mlp.experts.gate_up_proj", np.concatenate([data, up], axis=1)
        elif role == "ffn_down_exps":
            yield f"{prefix}{names[role]}", data
        elif role != "ffn_up_exps":
            yield f"{prefix}{names[role]}.{kind}", data


def _halves(matrix: NDArray[np.float32], heads: int) -> NDArray[np.float32]:
    """Rows of rotary pairs (2i, 2i+1) of every head, reordered to pairs (i, i + half)."""
    pairs = matrix.reshape(heads, -1, 2, matrix.shape[-1])
    return np.ascontiguousarray(pairs.swapaxes(1, 2).reshape(matrix.shape))
