"""Every family against transformers, on the same random weights in F32 files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import transformers
from tests.families import INTEGER_CACHE, transformers_logits
from tests.reference import kl_divergence
from tests.tiny_gguf import write_tiny_model

from borrador.models.gguf import TensorFormat
from borrador.models.native import NativeModel
from borrador.models.target import Rows
from borrador.types import Float32Array

TOKENS = [int(token) for token in np.random.default_rng(11).integers(0, 320, 330)]
WINDOW = 100
SIZES: dict[str, Any] = {"width": 64, "ffn": 96, "heads": 4, "kv_heads": 2, "tokenizer": False, "sharpness": 0.3}
SAME_SIZES: dict[str, Any] = {
    "hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 4, "num_key_value_heads": 2,
    "vocab_size": 320, "rms_norm_eps": 1e-5, "max_position_embeddings": 512,
    "bos_token_id": None, "eos_token_id": None, "pad_token_id": None, "attn_implementation": INTEGER_CACHE,
    "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
}  # fmt: skip


def engine_logits(path: Path, tokens: list[int] = TOKENS, capacity: int = 512) -> Float32Array:
    return np.array(NativeModel.load(path, threads=2).open(capacity).forward(Rows.chain(tokens)))


def reference(kind: str, path: Path, tokens: list[int] = TOKENS, **config: Any) -> Float32Array:
    build = getattr(transformers, f"{kind}ForCausalLM")
    shape = getattr(transformers, f"{kind.replace('Gemma3', 'Gemma3Text')}Config")
    return transformers_logits(build(shape(**(SAME_SIZES | config))), path, tokens)


def assert_close(found: Float32Array, expected: Float32Array) -> None:
    assert np.std(expected) > 0.2  # so that the bound means something
    assert np.abs(found - expected).max() < 1e-3


Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    return lambda *args, **kwargs: write_tiny_model(tmp_path / "tiny.gguf", *args, **(SIZES | kwargs))


def llama3_divisors(base: float, dim: int, factor: float, low: float, high: float, trained: int) -> Float32Array:
    """Wavelengths beyond trained / low are stretched by `factor`, those below trained / high stay."""
    wavelengths = 2 * np.pi * base ** (np.arange(0, dim, 2) / dim)
    smooth = np.clip((trained / wavelengths - low) / (high - low), 0, 1)
    return np.asarray(1 / ((1 - smooth) / factor + smooth), np.float32)


def test_llama_with_llama3_rope_scaling(write: Write) -> None:
    divisors = llama3_divisors(10000.0, 16, 8.0, 1.0, 4.0, 64)
    assert (divisors[0], divisors[-1]) == (1, 8)
    assert len(np.unique(divisors)) > 3
    path = write("llama", layers=2, tensors={"rope_freqs.weight": divisors})
    scaling = {
        "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 64, "rope_theta": 10000.0,
    }  # fmt: skip
    assert_close(engine_logits(path), reference("Llama", path, num_hidden_layers=2, rope_parameters=scaling))


@pytest.mark.parametrize("window", [1, WINDOW, 256, 400])
def test_mistral_with_windows_that_hide_whole_chunks_of_positions(write: Write, window: int) -> None:
    tokens = [*TOKENS, *TOKENS[::-1]]
    path = write("llama", layers=2, metadata={"llama.attention.sliding_window": window})
    expected = reference(
        "Mistral", path, tokens, num_hidden_layers=2, sliding_window=window, max_position_embeddings=1024
    )
    assert_close(engine_logits(path, tokens, capacity=700), expected)


@pytest.mark.parametrize("tied", [False, True])
def test_qwen3(write: Write, tied: bool) -> None:
    path = write("qwen3", layers=2, head_dim=24, tied=tied)
    assert_close(
        engine_logits(path), reference("Qwen3", path, num_hidden_layers=2, head_dim=24, tie_word_embeddings=tied)
    )


def test_gemma2(write: Write) -> None:
    metadata = {
        "gemma2.attention.sliding_window": WINDOW,
        "gemma2.attn_logit_softcapping": 2.0,
        "gemma2.final_logit_softcapping": 0.7,
    }
    path = write("gemma2", layers=4, head_dim=24, tied=True, metadata=metadata)
    expected = reference(
        "Gemma2", path, num_hidden_layers=4, head_dim=24, query_pre_attn_scalar=24, sliding_window=WINDOW,
        attn_logit_softcapping=2.0, final_logit_softcapping=0.7,
    )  # fmt: skip
    assert_close(engine_logits(path), expected)


@pytest.mark.parametrize("scaling", [1.0, 8.0])
def test_gemma3(write: Write, scaling: float) -> None:
    metadata = {
        "gemma3.attention.sliding_window": WINDOW,
        "gemma3.rope.freq_base": 1e6,
        "gemma3.rope.scaling.type": "linear",
        "gemma3.rope.scaling.factor": scaling,
    }
    path = write("gemma3", layers=7, head_dim=24, tied=True, metadata=metadata)
    ropes = {
        "full_attention": {"rope_type": "linear", "factor": scaling, "rope_theta": 1e6},
        "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
    }
    expected = reference(
        "Gemma3", path, num_hidden_layers=7, head_dim=24, query_pre_attn_scalar=24, sliding_window=WINDOW,
        rope_parameters=ropes,
    )  # fmt: skip
    assert_close(engine_logits(path), expected)


def test_gemma3_with_a_scale_pattern_and_soft_cap_of_its_own(write: Write) -> None:
    metadata = {
        "gemma3.attention.sliding_window": WINDOW,
        "gemma3.attention.sliding_window_pattern": [True, False, False, True],
        "gemma3.attention.scale": 0.1,
        "gemma3.final_logit_softcapping": 0.7,
    }
    path = write("gemma3", layers=4, head_dim=24, tied=True, metadata=metadata)
    kinds = ["sliding_attention", "full_attention", "full_attention", "sliding_attention"]
    ropes = {kind: {"rope_type": "default", "rope_theta": 10000.0} for kind in kinds}
    expected = reference(
        "Gemma3", path, num_hidden_layers=4, head_dim=24, query_pre_attn_scalar=100, sliding_window=WINDOW,
        layer_types=kinds, rope_parameters=ropes, final_logit_softcapping=0.7,
    )  # fmt: skip
    assert_close(engine_logits(path), expected)


def test_phi3(write: Write) -> None:
    path = write("phi3", layers=2, metadata={"phi3.attention.sliding_window": WINDOW})
    assert_close(engine_logits(path), reference("Phi3", path, num_hidden_layers=2, sliding_window=WINDOW))


@pytest.mark.parametrize(("length", "capacity"), [(60, 64), (330, 512)])
def test_phi3_with_longrope_and_heads_rotated_in_part(write: Write, length: int, capacity: int) -> None:
    """Short caches take the short factors, and caches of more than the original context the long ones."""
    short, long = np.linspace(1, 1.5, 6, dtype=np.float32), np.linspace(1.5, 6, 6, dtype=np.float32)
    metadata = {
        "phi3.rope.dimension_count": 12,
        "phi3.rope.scaling.original_context_length": 64,
        "phi3.rope.scaling.attn_factor": float(np.sqrt(1 + np.log(512 / 64) / np.log(64))),
    }
    factors = {"rope_factors_short.weight": short, "rope_factors_long.weight": long}
    path = write("phi3", layers=2, metadata=metadata, tensors=factors)
    scaling = {
        "rope_type": "longrope", "short_factor": short.tolist(), "long_factor": long.tolist(),
        "original_max_position_embeddings": 64, "partial_rotary_factor": 0.75, "rope_theta": 10000.0,
    }  # fmt: skip
    tokens = TOKENS[:length]
    expected = reference(
        "Phi3", path, tokens, num_hidden_layers=2, rope_parameters=scaling, original_max_position_embeddings=64
    )
    assert_close(engine_logits(path, tokens, capacity), expected)


def test_smollm3(write: Write) -> None:
    path = write("smollm3", layers=5, tied=True)
    assert_close(engine_logits(path), reference("SmolLM3", path, num_hidden_layers=5, tie_word_embeddings=True))


def test_mixtral(write: Write) -> None:
    path = write("llama", layers=2, experts=5, experts_used=2)
    expected = reference("Mixtral", path, num_hidden_layers=2, num_local_experts=5, num_experts_per_tok=2)
    assert_close(engine_logits(path), expected)


@pytest.mark.parametrize("normalised", [True, False])
def test_qwen3moe(write: Write, normalised: bool) -> None:
    metadata = {"qwen3moe.expert_weights_norm": normalised}
    path = write("qwen3moe", layers=2, head_dim=24, ffn=40, experts=7, experts_used=3, metadata=metadata)
    expected = reference(
        "Qwen3Moe", path, num_hidden_layers=2, head_dim=24, moe_intermediate_size=40, num_experts=7,
        num_experts_per_tok=3, norm_topk_prob=normalised,
    )  # fmt: skip
    assert_close(engine_logits(path), expected)


@pytest.mark.parametrize("stored_as", [TensorFormat.Q8_0, TensorFormat.Q4_K], ids=lambda item: item.name)
def test_quantised_experts_stay_close_to_float32(write: Write, stored_as: TensorFormat) -> None:
    path = write(
        "qwen3moe",
        format=stored_as,
        width=256,
        ffn=256,
        layers=2,
        head_dim=64,
        experts=7,
        experts_used=3,
        sharpness=3.0,
    )
    expected = reference(
        "Qwen3Moe", path, hidden_size=256, num_hidden_layers=2, head_dim=64, moe_intermediate_size=256, num_experts=7,
        num_experts_per_tok=3, norm_topk_prob=True,
    )  # fmt: skip
    divergence = kl_divergence(expected, engine_logits(path))
    assert np.median(divergence) < 0.005  # a row that ends at other experts is far off
