"""A model's configuration is read whole, and refused where it contradicts itself, its tensors or the engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.tiny_gguf import write_tiny_model

from borrador.errors import ModelError
from borrador.models.config import ModelConfig
from borrador.models.families import FAMILIES
from borrador.models.gguf import GgufFile, TensorFormat

EXPERTS: dict[str, Any] = {"qwen3moe": {"experts": 4, "experts_used": 2}}


def read(path: Path) -> ModelConfig:
    with GgufFile.open(path) as file:
        return ModelConfig.from_gguf(file)


def test_a_llama_model(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "m.gguf", width=64, ffn=96, layers=3, heads=4, kv_heads=2, vocabulary=300)
    assert read(path) == ModelConfig(
        architecture="llama", layers=3, width=64, heads=4, kv_heads=2, head_dim=16, ffn_width=96, context_length=512,
        vocabulary_size=300, norm_epsilon=float(np.float32(1e-5)), rope_base=10000.0, rope_dim=16,
        rope_interleaved=True, rope_freq_scale=1.0, attention_bias=False, tied_output=False,
    )  # fmt: skip


def test_a_tied_qwen2_model_with_its_own_head_size(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "m.gguf", "qwen2", width=64, ffn=64, heads=2, kv_heads=1, head_dim=48, tied=True)
    config = read(path)
    assert (config.architecture, config.head_dim, config.rope_dim) == ("qwen2", 48, 48)
    assert (config.rope_interleaved, config.attention_bias, config.tied_output) == (False, True, True)


def test_the_listed_tensors_are_the_files(tmp_path: Path) -> None:
    for architecture, tied in (("llama", True), ("qwen2", False)):
        path = write_tiny_model(tmp_path / "m.gguf", architecture, tied=tied)
        with GgufFile.open(path) as file:
            shapes = {name: info.shape for name, info in file.tensors.items()}
            assert dict(ModelConfig.from_gguf(file).tensor_shapes()) == shapes


@pytest.mark.parametrize("family", FAMILIES)
def test_the_listed_tensors_of_every_family_are_the_files(tmp_path: Path, family: str) -> None:
    path = write_tiny_model(tmp_path / "m.gguf", family, **EXPERTS.get(family, {}))
    with GgufFile.open(path) as file:
        shapes = {name: info.shape for name, info in file.tensors.items()}
        assert dict(ModelConfig.from_gguf(file).tensor_shapes()) == shapes


@pytest.mark.parametrize(
    ("family", "window", "pattern", "windows", "ropes"),
    [
        ("llama", None, None, (0, 0, 0, 0, 0, 0, 0), (0, 0, 0, 0, 0, 0, 0)),
        ("llama", 9, None, (9, 9, 9, 9, 9, 9, 9), (0, 0, 0, 0, 0, 0, 0)),
        ("phi3", 9, None, (9, 9, 9, 9, 9, 9, 9), (0, 0, 0, 0, 0, 0, 0)),
        ("gemma2", 9, None, (9, 0, 9, 0, 9, 0, 9), (0, 0, 0, 0, 0, 0, 0)),
        ("gemma3", 9, None, (9, 9, 9, 9, 9, 0, 9), (1, 1, 1, 1, 1, 0, 1)),
        ("gemma3", 9, 3, (9, 9, 0, 9, 9, 0, 9), (1, 1, 0, 1, 1, 0, 1)),
        ("gemma3", 9, [True] + 6 * [False], (9, 0, 0, 0, 0, 0, 0), (1, 0, 0, 0, 0, 0, 0)),
        ("smollm3", None, None, (0, 0, 0, 0, 0, 0, 0), (0, 0, 0, -1, 0, 0, 0)),
    ],
)
def test_windows_and_ropes_of_layers(
    tmp_path: Path, family: str, window: int | None, pattern: Any, windows: tuple[int, ...], ropes: tuple[int, ...]
) -> None:
    keys = {f"{family}.attention.sliding_window": window, f"{family}.attention.sliding_window_pattern": pattern}
    config = read(write_tiny_model(tmp_path / "m.gguf", family, width=32, ffn=32, layers=7, metadata=keys))
    assert tuple(config.window_of(layer) for layer in range(7)) == windows
    assert tuple(config.rope_of(layer) for layer in range(7)) == ropes


@pytest.mark.parametrize(("layers", "expected"), [(62, 0.25), (61, 0.0)])
def test_the_largest_gemma3_scales_scores_by_its_width_per_head(tmp_path: Path, layers: int, expected: float) -> None:
    path = write_tiny_model(tmp_path / "m.gguf", "gemma3", width=64, ffn=8, head_dim=4, layers=layers)
    assert read(path).attention_scale == expected


def test_experts_have_a_width_of_their_own(tmp_path: Path) -> None:
    path = write_tiny_model(
        tmp_path / "m.gguf", "qwen3moe", ffn=96, experts=4, experts_used=2, metadata={"qwen3moe.feed_forward_length": 7}
    )
    config = read(path)
    assert (config.ffn_width, config.experts, config.experts_used) == (96, 4, 2)


def test_experts_in_a_family_that_has_none_are_refused(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "m.gguf", "qwen2", experts=4, experts_used=2)
    with pytest.raises(ModelError, match="mixture of experts, which is not supported for qwen2"):
        read(path)


def test_a_window_in_a_family_that_does_not_say_where_is_refused(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "m.gguf", "qwen2", metadata={"qwen2.attention.sliding_window": 128})
    with pytest.raises(ModelError, match="sliding-window attention, which is not supported for qwen2"):
        read(path)


def test_a_window_pattern_of_another_length_is_refused(tmp_path: Path) -> None:
    keys = {"gemma3.attention.sliding_window": 9, "gemma3.attention.sliding_window_pattern": [True]}
    with pytest.raises(ModelError, match="for each of 2 layers"):
        read(write_tiny_model(tmp_path / "m.gguf", "gemma3", metadata=keys))


def test_defaults_of_keys_a_file_may_leave_out(tmp_path: Path) -> None:
    absent = {"llama.rope.freq_base": None, "llama.attention.head_count_kv": None}
    config = read(write_tiny_model(tmp_path / "m.gguf", heads=4, kv_heads=4, metadata=absent))
    assert (config.rope_base, config.kv_heads) == (10000.0, 4)


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": 4.0}, 0.25),
        ({"llama.rope.scaling.factor": 2.0}, 0.5),
        ({"llama.rope.scale_linear": 8.0}, 0.125),
        ({"llama.rope.scaling.type": "none", "llama.rope.scaling.factor": 4.0}, 1.0),
        ({"llama.rope.scaling.factor": 0.0}, 1.0),
    ],
)
def test_linear_rope_scaling(tmp_path: Path, metadata: dict[str, Any], expected: float) -> None:
    assert read(write_tiny_model(tmp_path / "m.gguf", metadata=metadata)).rope_freq_scale == expected


def test_rope_scaling_by_factors_in_the_file_leaves_positions_as_they_are(tmp_path: Path) -> None:
    factors = {f"rope_factors_{kind}.weight": np.ones(32, np.float32) for kind in ("short", "long")}
    metadata = {"phi3.rope.scaling.type": "longrope", "phi3.rope.scaling.factor": 8.0}
    config = read(write_tiny_model(tmp_path / "m.gguf", "phi3", metadata=metadata, tensors=factors))
    assert (config.rope_freq_scale, config.rope_short_context) == (1.0, 512)
    assert config.rope_factors == tuple(factors)


@pytest.mark.parametrize("family", ["gemma", "mamba", "x" * 500])
def test_another_family_is_named_beside_those_supported(tmp_path: Path, family: str) -> None:
    path = write_tiny_model(tmp_path / "m.gguf", metadata={"general.architecture": family})
    with pytest.raises(ModelError, match=f"'{family[:64]}' model") as caught:
        read(path)
    assert caught.value.hint == f"Supported families: {', '.join(FAMILIES)}."


ZEROS = np.zeros(256, np.float32)


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"llama.rope.scaling.type": "yarn"}, "rope scaling 'yarn'"),
        ({"llama.rope.scaling.type": "longrope"}, "rope scaling 'longrope'"),
        ({"llama.rope.scaling.factor": float("nan")}, "'llama.rope.scaling.factor' must be a number"),
        ({"llama.expert_count": 8}, "no metadata key 'llama.expert_used_count'"),
        ({"llama.expert_count": 8, "llama.expert_used_count": 9}, "from 1 to 8, got 9"),
        ({"llama.expert_count": 8, "llama.expert_used_count": 2}, "no tensor 'blk.0.ffn_gate_inp.weight'"),
        ({"llama.attention.causal": False}, "embedding model"),
        ({"llama.attention.head_count_kv": 3}, "multiple of kv heads, got 4 and 3"),
        ({"llama.attention.head_count_kv": [2, 2]}, "got a list of 2"),
        ({"llama.attention.head_count_kv": 8}, "from 1 to 4, got 8"),
        ({"llama.attention.head_count": 0}, "from 1 to 256, got 0"),
        ({"llama.attention.value_length": 32}, "equally long, got 64 and 32"),
        ({"llama.attention.key_length": 32, "llama.attention.value_length": 32}, "'blk.0.attn_q.weight' must have"),
        ({"llama.rope.dimension_count": 63}, "must be even, got 63"),
        ({"llama.rope.dimension_count": 128}, "from 2 to 64, got 128"),
        ({"llama.rope.freq_base": 0.0}, "'llama.rope.freq_base' must be a number from 1"),
        ({"llama.rope.freq_base": "high"}, "got 'high'"),
        ({"llama.attention.layer_norm_rms_epsilon": float("nan")}, "got nan"),
        ({"llama.attention.layer_norm_rms_epsilon": None}, "no metadata key 'llama.attention.layer_norm_rms_epsilon'"),
        ({"llama.block_count": None}, "no metadata key 'llama.block_count'"),
        ({"llama.block_count": 0}, "from 1 to 1024, got 0"),
        ({"llama.block_count": 2**32 - 1}, "from 1 to 1024, got 4294967295"),
        ({"llama.block_count": 3}, "no tensor 'blk.2.attn_norm.weight'"),
        ({"llama.block_count": 1}, "the tensor 'blk.1."),
        ({"llama.embedding_length": 512}, "must have the shape"),
        ({"llama.feed_forward_length": 256}, "'blk.0.ffn_gate.weight' must have the shape"),
        ({"llama.context_length": 0}, "from 1 to 16777216, got 0"),
        ({"tokenizer.ggml.tokens": ["a", "b"]}, "lists 2 tokens, and its embedding matrix has 320 rows"),
    ],
)
def test_metadata_that_does_not_fit_is_named(tmp_path: Path, metadata: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError) as caught:
        read(write_tiny_model(tmp_path / "m.gguf", metadata=metadata))
    assert message in str(caught.value)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ({"blk.1.ffn_norm.weight": None}, "no tensor 'blk.1.ffn_norm.weight'"),
        ({"token_embd.weight": None}, "no tensor 'token_embd.weight'"),
        ({"token_embd.weight": ZEROS}, "two dimensions, got (256,)"),
        ({"output.weight": np.zeros((319, 256))}, "'output.weight' must have the shape (256, 320), got (256, 319)"),
        ({"blk.0.attn_k.weight": np.zeros((256, 128))}, "'blk.0.attn_k.weight' must have the shape (256, 128)"),
        ({"blk.0.attn_q.bias": ZEROS}, "no tensor 'blk.0.attn_k.bias'"),
        ({"blk.0.attn_output.bias": ZEROS}, "tensor 'blk.0.attn_output.bias', which a llama model of 2 layers"),
        ({"rope_freqs.weight": ZEROS[:31]}, "'rope_freqs.weight' must have the shape (32,), got (31,)"),
        ({"rope_factors_long.weight": ZEROS[:32]}, "one of a pair"),
    ],
)
def test_tensors_that_do_not_fit_are_named(tmp_path: Path, tensors: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError) as caught:
        read(write_tiny_model(tmp_path / "m.gguf", tensors=tensors))
    assert message in str(caught.value)


def test_a_quantised_norm_is_refused(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "m.gguf", format=TensorFormat.F16)
    content = path.read_bytes()
    name = b"output_norm.weight"
    type_field = content.index(name) + len(name) + 4 + 8
    path.write_bytes(content[:type_field] + (1).to_bytes(4, "little") + content[type_field + 4 :])
    with pytest.raises(ModelError, match="must be F32, got F16"):
        read(path)


@pytest.mark.real_model
def test_the_catalogues_models(model_path: Any) -> None:
    small, large = (read(model_path(name)) for name in ("smollm2-135m", "qwen2.5-coder-0.5b"))
    assert (small.architecture, small.layers, small.width, small.vocabulary_size) == ("llama", 30, 576, 49152)
    assert (small.tied_output, small.rope_base, small.heads, small.kv_heads) == (True, 100000.0, 9, 3)
    assert (large.architecture, large.layers, large.width, large.vocabulary_size) == ("qwen2", 24, 896, 151936)
    assert (large.tied_output, large.rope_base, large.heads, large.kv_heads) == (False, 1000000.0, 14, 2)
