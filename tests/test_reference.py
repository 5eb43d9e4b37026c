"""The reference itself is checked, against the `gguf` package and against arithmetic done by hand."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
import pytest
from tests.reference import dequantize, kl_divergence, read_matrix, reference_logits
from tests.tiny_gguf import random_matrix, write_tiny_model

from borrador.models.gguf import GgufFile, TensorFormat


@pytest.mark.parametrize("stored_as", TensorFormat, ids=lambda item: item.name)
def test_every_format_is_dequantised_as_the_gguf_package_does(stored_as: TensorFormat) -> None:
    random = np.random.default_rng(3)
    data = random_matrix(random, (4, 1024), stored_as, 0.1)
    expected = gguf.quants.dequantize(data, gguf.GGMLQuantizationType(int(stored_as)))
    np.testing.assert_array_equal(dequantize(data.reshape(-1).view(np.uint8), stored_as), expected.reshape(-1))


def test_the_scales_of_mxfp4_are_powers_of_two_down_to_subnormal_numbers() -> None:
    data = np.full((255, 17), 0x22, np.uint8)  # 1.0 everywhere; the 255 of the standard is not a number
    data[:, 0] = np.arange(255)
    found = dequantize(data.reshape(-1), TensorFormat.MXFP4).reshape(255, 32)
    np.testing.assert_array_equal(found, np.repeat(np.ldexp(np.float32(1), np.arange(-127, 128))[:, None], 32, axis=1))
    expected = gguf.quants.dequantize(data, gguf.GGMLQuantizationType.MXFP4)
    np.testing.assert_array_equal(found, expected)


def test_some_rows_of_a_matrix_are_the_same_as_those_rows_of_the_whole(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "m.gguf", format=TensorFormat.Q6_K)
    with GgufFile.open(path) as file:
        whole = read_matrix(file, "blk.1.ffn_down.weight")
        assert whole.shape == (256, 512)
        np.testing.assert_array_equal(read_matrix(file, "blk.1.ffn_down.weight", slice(7, 9)), whole[7:9])


@pytest.mark.parametrize("architecture", ["llama", "qwen2"])
def test_a_prefix_has_the_same_logits_whatever_follows(tmp_path: Path, architecture: str) -> None:
    path = write_tiny_model(tmp_path / "m.gguf", architecture)
    logits = reference_logits(path, [5, 9, 200, 31, 7])
    assert logits.shape == (5, 320)
    np.testing.assert_allclose(logits[:3], reference_logits(path, [5, 9, 200]), atol=1e-4)
    assert np.abs(logits[2] - reference_logits(path, [9, 5, 200])[2]).max() > 0.01  # order matters: positions work


def test_one_layer_by_hand(tmp_path: Path) -> None:
    """With one head, zero attention output and zero gate, a layer adds nothing: logits are norm(embedding) @ output."""
    zero = np.zeros((32, 32), np.float32)
    path = write_tiny_model(
        tmp_path / "m.gguf", width=32, ffn=32, heads=1, kv_heads=1, layers=1, vocabulary=8, tokenizer=False,
        tensors={"blk.0.attn_output.weight": zero, "blk.0.ffn_gate.weight": zero},
    )  # fmt: skip
    with GgufFile.open(path) as file:
        embedding, output = read_matrix(file, "token_embd.weight")[3], read_matrix(file, "output.weight")
        normed = embedding / np.sqrt(np.mean(embedding**2) + 1e-5) * read_matrix(file, "output_norm.weight")
    np.testing.assert_allclose(reference_logits(path, [3])[0], output @ normed, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("architecture", "pair"), [("llama", (0, 1)), ("qwen2", (0, 16))])
def test_rope_turns_the_first_pair_by_one_radian_per_position(
    tmp_path: Path, architecture: str, pair: tuple[int, int]
) -> None:
    """Keys point along the first pair's first axis, so the score of position 0 seen from n is cos(n).

    Values are 1 at position 0 (token 1) and 0 at position 1 (token 2); the output reads the attention's weight.
    """
    width, scale = 32, 20.0
    axis = np.zeros((width, width), np.float32)
    axis[pair[0], 0] = scale  # both tokens have the same first element, so the same query and key
    value, out = np.zeros((width, width), np.float32), np.zeros((width, width), np.float32)
    value[0, 1], out[2, 0] = 1.0, 1.0
    embedding, output = np.zeros((8, width), np.float32), np.zeros((8, width), np.float32)
    embedding[1, :4], embedding[2, :4] = (1, 1, 0, 0), (1, 0, 0, 1)
    output[0, 2] = 1.0
    ones, zero = np.ones(width, np.float32), np.zeros(width, np.float32)
    tensors = {
        "token_embd.weight": embedding, "output.weight": output, "output_norm.weight": ones,
        "blk.0.attn_norm.weight": ones, "blk.0.ffn_norm.weight": ones, "blk.0.attn_q.weight": axis,
        "blk.0.attn_k.weight": axis, "blk.0.attn_v.weight": value, "blk.0.attn_output.weight": out,
        "blk.0.ffn_gate.weight": axis * 0,
    }  # fmt: skip
    if architecture == "qwen2":
        tensors |= {f"blk.0.attn_{part}.bias": zero for part in "qkv"}
    path = write_tiny_model(
        tmp_path / "m.gguf", architecture, width=width, ffn=width, heads=1, kv_heads=1, layers=1, vocabulary=8,
        tokenizer=False, tensors=tensors,
    )  # fmt: skip
    root = np.sqrt(1 / (2 / width + 1e-5))  # what a unit element is after the norm
    gain = (scale * root) ** 2 / np.sqrt(width)
    weight = 1 / (1 + np.exp(gain - gain * np.cos(1.0)))
    attended = root * weight
    hidden = np.array([1.0, 0.0, attended, 1.0])
    expected = attended / np.sqrt((hidden**2).sum() / width + 1e-5)
    np.testing.assert_allclose(reference_logits(path, [1, 2])[1, 0], expected, rtol=1e-4, atol=1e-7)


def test_kl_divergence_of_known_distributions() -> None:
    half, skewed = np.log(np.array([[0.5, 0.5]], np.float32)), np.log(np.array([[0.9, 0.1]], np.float32))
    np.testing.assert_allclose(
        kl_divergence(half, skewed), 0.5 * np.log(0.5 / 0.9) + 0.5 * np.log(0.5 / 0.1), rtol=1e-5
    )
    np.testing.assert_allclose(kl_divergence(half, half + 3), 0, atol=1e-12)
