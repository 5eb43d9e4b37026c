"""Writes tiny GGUF models with random weights, so that tests of the engine need no download.

The files are made with the `gguf` package, which shares no code with the reader under test.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from numpy.typing import NDArray

from borrador.models.gguf import TensorFormat

MERGES = [
    ("t", "h"),
    ("th", "e"),
    ("Ġ", "t"),
    ("Ġt", "he"),
    ("i", "n"),
    ("a", "n"),
    ("an", "d"),
    ("Ġ", "a"),
    ("Ġ", "s"),
    ("e", "r"),
    ("o", "n"),
    ("r", "e"),
    ("l", "l"),
    ("in", "g"),
    ("h", "e"),
    ("he", "ll"),
    ("hell", "o"),
    ("Ġ", "w"),
]
SPECIAL_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
HEAD_NORMS = ("qwen3", "qwen3moe", "gemma3")
SANDWICH_NORMS = ("gemma2", "gemma3")
FUSED = ("phi3",)
MIN_TOKENIZER_VOCABULARY = 256 + len(MERGES) + len(SPECIAL_TOKENS)
CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


# Formats that the `gguf` package does not quantise to: where the half-precision scale stands, the standard deviation of
# scale * quant, and what centres the values on zero as the scale of the minimum that follows; 0 without minimum.
_BLOCK_SCALES = {
    TensorFormat.Q2_K: (80, 14, 1.5),
    TensorFormat.Q3_K: (108, 42, 0),
    TensorFormat.Q4_K: (0, 250, 7.5),
    TensorFormat.Q5_K: (0, 500, 15.5),
    TensorFormat.Q6_K: (208, 1370, 0),
    TensorFormat.IQ4_NL: (0, 70, 0),
    TensorFormat.IQ4_XS: (0, 1300, 0),
}


def write_tiny_model(
    path: Path,
    architecture: str = "llama",
    *,
    format: TensorFormat = TensorFormat.F32,  # noqa: A002
    embedding_format: TensorFormat | None = None,
    width: int = 256,
    layers: int = 2,
    heads: int = 4,
    kv_heads: int = 2,
    head_dim: int | None = None,
    ffn: int = 512,
    vocabulary: int = 320,
    context: int = 512,
    seed: int = 0,
    tied: bool = False,
    tokenizer: bool = True,
    experts: int = 0,
    experts_used: int = 0,
    sharpness: float = 3.0,
    metadata: Mapping[str, Any] | None = None,
    tensors: Mapping[str, NDArray[np.float32] | None] | None = None,
) -> Path:
    """Write a random model of any family to `path` and return it. The same arguments give the same file.

    Args:
        format: of all matrices; every row length must be a multiple of its block (256 for K formats).
        embedding_format: of the embedding and output matrices; None is `format`.
        head_dim: None is width / heads.
        tokenizer: add a byte-level BPE vocabulary; the three special tokens are the last ids, and `<|im_end|>` ends
            an answer. The vocabulary must then have at least MIN_TOKENIZER_VOCABULARY tokens.
        experts: feed-forwards of each layer that a router chooses `experts_used` of; 0: one, without a router.
        sharpness: about the standard deviation of the logits.
        metadata: keys to add or to replace; None as a value leaves the key out.
        tensors: tensors to add or to replace, stored as F32; None as a value leaves the tensor out.
    """
    random = np.random.default_rng(seed)
    writer = gguf.GGUFWriter(path, architecture)
    head_dim = head_dim or width // heads
    values: dict[str, Any] = {
        f"{architecture}.block_count": layers,
        f"{architecture}.context_length": context,
        f"{architecture}.embedding_length": width,
        f"{architecture}.feed_forward_length": ffn,
        f"{architecture}.attention.head_count": heads,
        f"{architecture}.attention.head_count_kv": kv_heads,
        f"{architecture}.attention.layer_norm_rms_epsilon": 1e-5,
        f"{architecture}.rope.freq_base": 10000.0,
    }
    if head_dim != width // heads:
        values |= {f"{architecture}.attention.{kind}_length": head_dim for kind in ("key", "value")}
    if experts:
        values |= {f"{architecture}.expert_count": experts, f"{architecture}.expert_used_count": experts_used}
        values |= {f"{architecture}.expert_feed_forward_length": ffn} if architecture == "qwen3moe" else {}
    if tokenizer:
        values |= _tokenizer_metadata(architecture, vocabulary)
    for key, value in (values | dict(metadata or {})).items():
        if value is not None:
            kind = gguf.GGUFValueType
            writer.add_key_value(key, value, kind.UINT32 if type(value) is int else kind.get_type(value))

    block = _block_shapes(architecture, width, heads, kv_heads, head_dim, ffn, experts)
    shapes = _tensor_shapes(block, width, layers, vocabulary, tied)
    replaced = dict(tensors or {})
    for name, shape in shapes.items():
        stored_as = (embedding_format or format) if name in ("token_embd.weight", "output.weight") else format
        # Drawn even where it is replaced, so that the others stay the same.
        data = _random_tensor(random, name, shape, stored_as, sharpness)
        if name not in replaced:
            writer.add_tensor(name, data, raw_dtype=_raw_type(name, shape, stored_as))
    for name, tensor in replaced.items():
        if tensor is not None:
            writer.add_tensor(name, np.asarray(tensor, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def byte_tokens() -> list[str]:
    """The printable character that byte-level BPE writes for each byte (GPT-2's table)."""
    printable = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    characters = {byte: chr(byte) for byte in printable} | {byte: chr(256 + i) for i, byte in enumerate(others)}
    return [characters[byte] for byte in range(256)]


def random_blocks(
    random: np.random.Generator, shape: Sequence[int], stored_as: TensorFormat, deviation: float
) -> NDArray[np.uint8]:
    """Random valid blocks of a format of _BLOCK_SCALES (rows x bytes) of about this standard deviation."""
    count = math.prod(shape) // stored_as.block_size
    blocks = random.integers(0, 256, (count, stored_as.block_bytes), dtype=np.uint8)
    at, divisor, centre = _BLOCK_SCALES[stored_as]
    scale = deviation / divisor * random.uniform(0.5, 1.5, (count, 1))
    halves = np.hstack([scale, scale * centre] if centre else [scale]).astype("<f2").view(np.uint8)
    blocks[:, at : at + halves.shape[1]] = halves
    return blocks.reshape(*shape[:-1], -1)


def random_matrix(
    random: np.random.Generator, shape: Sequence[int], stored_as: TensorFormat, deviation: float
) -> NDArray[Any]:
    """Random values of this standard deviation (rows x columns, or rows x bytes if quantised)."""
    if stored_as in _BLOCK_SCALES:
        return random_blocks(random, shape, stored_as, deviation)
    weights = random.normal(0.0, deviation, shape).astype(np.float32)
    quantized: NDArray[Any] = gguf.quants.quantize(weights, gguf.GGMLQuantizationType(int(stored_as)))
    return quantized


def _tokenizer_metadata(architecture: str, vocabulary: int) -> dict[str, Any]:
    if vocabulary < MIN_TOKENIZER_VOCABULARY:
        raise ValueError(f"a tokenizer needs at least {MIN_TOKENIZER_VOCABULARY} tokens, got {vocabulary}")
    words = [*byte_tokens(), *(left + right for left, right in MERGES)]
    unused = [f"<unused{i}>" for i in range(vocabulary - MIN_TOKENIZER_VOCABULARY)]
    kind = gguf.TokenType
    types = [kind.NORMAL] * len(words) + [kind.UNUSED] * len(unused) + [kind.CONTROL] * len(SPECIAL_TOKENS)
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "qwen2" if architecture.startswith("qwen") else "llama-bpe",
        "tokenizer.ggml.tokens": [*words, *unused, *SPECIAL_TOKENS],
        "tokenizer.ggml.token_type": [int(item) for item in types],
        "tokenizer.ggml.merges": [f"{left} {right}" for left, right in MERGES],
        "tokenizer.ggml.bos_token_id": vocabulary - 3,
        "tokenizer.ggml.eos_token_id": vocabulary - 1,
        "tokenizer.ggml.padding_token_id": vocabulary - 3,
        "tokenizer.ggml.add_bos_token": False,
        "tokenizer.chat_template": CHAT_TEMPLATE,
    }


def _tensor_shapes(
    block: Mapping[str, tuple[int, ...]], width: int, layers: int, vocabulary: int, tied: bool
) -> dict[str, tuple[int, ...]]:
    """Shapes in NumPy order: rows first."""
    shapes: dict[str, tuple[int, ...]] = {"token_embd.weight": (vocabulary, width), "output_norm.weight": (width,)}
    if not tied:
        shapes["output.weight"] = (vocabulary, width)
    for layer in range(layers):
        shapes |= {f"blk.{layer}.{name}": shape for name, shape in block.items()}
    return shapes


def _block_shapes(
    architecture: str, width: int, heads: int, kv_heads: int, head_dim: int, ffn: int, experts: int
) -> dict[str, tuple[int, ...]]:
    queries, keys = heads * head_dim, kv_heads * head_dim
    shapes: dict[str, tuple[int, ...]] = {"attn_norm.weight": (width,)}
    if architecture in FUSED:
        shapes["attn_qkv.weight"] = (queries + 2 * keys, width)
    else:
        shapes |= {"attn_q.weight": (queries, width), "attn_k.weight": (keys, width), "attn_v.weight": (keys, width)}
    shapes |= {"attn_output.weight": (width, queries), "ffn_norm.weight": (width,)}
    shapes |= _ffn_shapes(architecture, width, ffn, experts)
    if architecture == "qwen2":
        shapes |= {"attn_q.bias": (queries,), "attn_k.bias": (keys,), "attn_v.bias": (keys,)}
    if architecture in HEAD_NORMS:
        shapes |= {"attn_q_norm.weight": (head_dim,), "attn_k_norm.weight": (head_dim,)}
    if architecture in SANDWICH_NORMS:
        shapes |= {"post_attention_norm.weight": (width,), "post_ffw_norm.weight": (width,)}
    return shapes


def _ffn_shapes(architecture: str, width: int, ffn: int, experts: int) -> dict[str, tuple[int, ...]]:
    if experts:
        return {
            "ffn_gate_inp.weight": (experts, width),
            "ffn_gate_exps.weight": (experts, ffn, width),
            "ffn_up_exps.weight": (experts, ffn, width),
            "ffn_down_exps.weight": (experts, width, ffn),
        }
    if architecture in FUSED:
        return {"ffn_up.weight": (2 * ffn, width), "ffn_down.weight": (width, ffn)}
    return {"ffn_gate.weight": (ffn, width), "ffn_up.weight": (ffn, width), "ffn_down.weight": (width, ffn)}


def _random_tensor(
    random: np.random.Generator, name: str, shape: tuple[int, ...], stored_as: TensorFormat, sharpness: float
) -> NDArray[Any]:
    if len(shape) == 1:
        centre = 1.0 if "norm" in name else 0.0
        return random.normal(centre, 0.1, shape).astype(np.float32)
    # Logits with a standard deviation of 3 are sharp enough for greedy choices to be clear.
    deviation = (sharpness if name in ("token_embd.weight", "output.weight") else 1.0) / shape[-1] ** 0.5
    return random_matrix(random, shape, TensorFormat.F32 if "ffn_gate_inp" in name else stored_as, deviation)


def _raw_type(name: str, shape: tuple[int, ...], stored_as: TensorFormat) -> gguf.GGMLQuantizationType:
    single = len(shape) == 1 or "ffn_gate_inp" in name
    return gguf.GGMLQuantizationType(int(TensorFormat.F32 if single else stored_as))
