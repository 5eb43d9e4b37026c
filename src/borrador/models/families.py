"""What sets the families of models apart, as far as their files do not say it themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """What all models of a family have in common.

    Attributes:
        rope_interleaved: rotary pairs are (2i, 2i+1), not (i, i + half).
        head_norms: each head's query and key is normed before it is rotated.
        sandwich_norms: the outputs of attention and feed-forward are normed before they are added.
        fused: query, key and value are one tensor, and so are gate and up.
        gelu: the gate goes through GELU (tanh approximation), not SiLU.
        scaled_embedding: embeddings are multiplied by the square root of the width.
        experts: a file may hold a mixture of experts.
        windows: a file may ask for sliding-window attention.
        full_attention_period: with a window, every layer of this number sees all positions; 0: none does.
        local_rope_base: of layers with a window; 0: they rotate as the others do.
        ropeless_period: every layer of this number has no rotary positions; 0: all have.
        largest_layers: layers of the one model whose scores are scaled by its width per head; 0: there is none.
    """

    rope_interleaved: bool = False
    head_norms: bool = False
    sandwich_norms: bool = False
    fused: bool = False
    gelu: bool = False
    scaled_embedding: bool = False
    experts: bool = False
    windows: bool = False
    full_attention_period: int = 0
    local_rope_base: float = 0.0
    ropeless_period: int = 0
    largest_layers: int = 0


FAMILIES: Mapping[str, Family] = MappingProxyType(
    {
        "llama": Family(rope_interleaved=True, windows=True, experts=True),  # and Mistral, and Mixtral
        "qwen2": Family(),
        "qwen3": Family(head_norms=True),
        "qwen3moe": Family(head_norms=True, experts=True),
        "gemma2": Family(
            sandwich_norms=True, gelu=True, scaled_embedding=True,
            windows=True, full_attention_period=2, largest_layers=46,
        ),
        "gemma3": Family(
            head_norms=True, sandwich_norms=True, gelu=True, scaled_embedding=True,
            windows=True, full_attention_period=6, local_rope_base=10000.0, largest_layers=62,
        ),
        "phi3": Family(fused=True, windows=True),
        "smollm3": Family(rope_interleaved=True, ropeless_period=4),
    }
)  # fmt: skip
