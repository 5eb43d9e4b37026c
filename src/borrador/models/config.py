"""What a model is: the numbers of its architecture, read from a GGUF file and checked against its tensors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from borrador.errors import ModelError
from borrador.models.gguf import GgufFile, TensorFormat, TensorInfo

FAMILIES = {"llama": True, "qwen2": False}  # family: rotary pairs are interleaved
_MAX_LAYERS = 1024
_MAX_WIDTH = 1 << 17
_MAX_CONTEXT = 1 << 24
_OTHER_MODEL = "Use another file of the model, or another model."


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """The shape of a `llama` or `qwen2` transformer.

    Attributes:
        architecture: the family.
        layers: transformer blocks.
        width: of the hidden state.
        heads: query heads.
        kv_heads: key and value heads; heads is a multiple of it.
        head_dim: elements of one head.
        ffn_width: of the feed-forward layer.
        context_length: positions the model was trained for.
        vocabulary_size: tokens it knows.
        norm_epsilon: of the RMS norms.
        rope_base: the rotary embedding's base frequency.
        rope_dim: the first elements of a head that are rotated, an even number.
        rope_interleaved: True rotates the pairs (2i, 2i+1); False rotates (i, i + rope_dim / 2).
        rope_freq_scale: factor on positions (linear scaling), 1 where there is none.
        attention_bias: query, key and value projections have a bias.
        tied_output: the output layer is the embedding matrix.
    """

    architecture: str
    layers: int
    width: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn_width: int
    context_length: int
    vocabulary_size: int
    norm_epsilon: float
    rope_base: float
    rope_dim: int
    rope_interleaved: bool
    rope_freq_scale: float
    attention_bias: bool
    tied_output: bool

    @classmethod
    def from_gguf(cls, file: GgufFile) -> ModelConfig:
        """Read and check a model's configuration; nothing is allocated.

        Raises:
            ModelError: the family is not supported, a value is missing or out of range, the file asks for
                something this engine does not compute, or a tensor is missing, unexpected or of another shape.
        """
        family = file.architecture
        if family not in FAMILIES:
            raise ModelError(
                f"{file.path.name} is a {family[:64]!r} model, and that family is not supported",
                f"Supported families: {', '.join(FAMILIES)}.",
            )
        _refuse_unsupported(file, family)
        config = _read(file, family)
        _check_heads(file, config)
        _check_tensors(file, config)
        return config

    def tensor_shapes(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Name and shape of every tensor that the model needs, in GGUF order (row length first)."""
        queries, keys = self.heads * self.head_dim, self.kv_heads * self.head_dim
        yield "token_embd.weight", (self.width, self.vocabulary_size)
        yield "output_norm.weight", (self.width,)
        if not self.tied_output:
            yield "output.weight", (self.width, self.vocabulary_size)
        for layer in range(self.layers):
            block = f"blk.{layer}."
            yield block + "attn_norm.weight", (self.width,)
            for name, size in (("q", queries), ("k", keys), ("v", keys)):
                yield f"{block}attn_{name}.weight", (self.width, size)
                if self.attention_bias:
                    yield f"{block}attn_{name}.bias", (size,)
            yield block + "attn_output.weight", (queries, self.width)
            yield block + "ffn_norm.weight", (self.width,)
            yield block + "ffn_gate.weight", (self.width, self.ffn_width)
            yield block + "ffn_up.weight", (self.width, self.ffn_width)
            yield block + "ffn_down.weight", (self.ffn_width, self.width)


def _read(file: GgufFile, family: str) -> ModelConfig:
    width = file.integer(f"{family}.embedding_length", low=2, high=_MAX_WIDTH)
    heads = file.integer(f"{family}.attention.head_count", low=1, high=width)
    head_dim = file.integer(f"{family}.attention.key_length", width // heads, low=2, high=width)
    return ModelConfig(
        architecture=family,
        layers=file.integer(f"{family}.block_count", low=1, high=_MAX_LAYERS),
        width=width,
        heads=heads,
        kv_heads=file.integer(f"{family}.attention.head_count_kv", heads, low=1, high=heads),
        head_dim=head_dim,
        ffn_width=file.integer(f"{family}.feed_forward_length", low=1, high=8 * _MAX_WIDTH),
        context_length=file.integer(f"{family}.context_length", low=1, high=_MAX_CONTEXT),
        vocabulary_size=_vocabulary_size(file),
        norm_epsilon=file.number(f"{family}.attention.layer_norm_rms_epsilon", low=1e-12, high=0.1),
        rope_base=file.number(f"{family}.rope.freq_base", 10000.0, low=1.0, high=1e12),
        rope_dim=file.integer(f"{family}.rope.dimension_count", head_dim, low=2, high=head_dim),
        rope_interleaved=FAMILIES[family],
        rope_freq_scale=_rope_freq_scale(file, family),
        attention_bias="blk.0.attn_q.bias" in file.tensors,
        tied_output="output.weight" not in file.tensors,
    )


def _vocabulary_size(file: GgufFile) -> int:
    embedding = _tensor(file, "token_embd.weight")
    if len(embedding.shape) != 2:
        raise _wrong_shape(file, embedding, "two dimensions")
    size = embedding.shape[1]
    tokens = file.metadata.get("tokenizer.ggml.tokens")
    if isinstance(tokens, list) and len(tokens) != size:
        raise ModelError(
            f"{file.path.name} lists {len(tokens)} tokens, and its embedding matrix has {size} rows", _OTHER_MODEL
        )
    return size


def _rope_freq_scale(file: GgufFile, family: str) -> float:
    """llama.cpp writes the factor under `scaling.factor`, and wrote it under `scale_linear` before."""
    kind = file.text(f"{family}.rope.scaling.type", "linear")
    if kind not in ("none", "linear"):
        raise ModelError(
            f"{file.path.name} needs the rope scaling {kind[:64]!r}, which is not supported",
            "Supported are none and linear; use another model.",
        )
    legacy = file.number(f"{family}.rope.scale_linear", 1.0, low=0.0, high=1e6)
    factor = file.number(f"{family}.rope.scaling.factor", legacy, low=0.0, high=1e6)
    return 1.0 if kind == "none" or factor == 0.0 else 1.0 / factor


def _refuse_unsupported(file: GgufFile, family: str) -> None:
    """Features of these families that would change the result if they were ignored."""
    if file.integer(f"{family}.expert_count", 0):
        raise ModelError(f"{file.path.name} is a mixture of experts, which is not supported", _OTHER_MODEL)
    if file.integer(f"{family}.attention.sliding_window", 0):
        raise ModelError(f"{file.path.name} uses sliding-window attention, which is not supported", _OTHER_MODEL)
    if not file.flag(f"{family}.attention.causal", True):
        raise ModelError(f"{file.path.name} is an embedding model and cannot write text", _OTHER_MODEL)
    if "rope_freqs.weight" in file.tensors:
        raise ModelError(f"{file.path.name} needs the rope scaling 'llama3', which is not supported", _OTHER_MODEL)


def _check_heads(file: GgufFile, config: ModelConfig) -> None:
    if config.heads % config.kv_heads:
        raise ModelError(
            f"{file.path.name}: heads must be a multiple of kv heads, got {config.heads} and {config.kv_heads}",
            _OTHER_MODEL,
        )
    if config.rope_dim % 2:
        raise ModelError(f"{file.path.name}: the rope dimension must be even, got {config.rope_dim}", _OTHER_MODEL)
    value_length = file.integer(f"{config.architecture}.attention.value_length", config.head_dim)
    if value_length != config.head_dim:
        raise ModelError(
            f"{file.path.name}: keys and values must be equally long, got {config.head_dim} and {value_length}",
            _OTHER_MODEL,
        )


def _check_tensors(file: GgufFile, config: ModelConfig) -> None:
    needed = set[str]()
    for name, shape in config.tensor_shapes():
        tensor = _tensor(file, name)
        if tensor.shape != shape:
            raise _wrong_shape(file, tensor, f"the shape {shape}")
        if len(shape) == 1 and tensor.format is not TensorFormat.F32:
            raise ModelError(f"{file.path.name}: tensor {name!r} must be F32, got {tensor.format.name}", _OTHER_MODEL)
        needed.add(name)
    unexpected = next((name for name in file.tensors if name not in needed), None)
    if unexpected is not None:
        raise ModelError(
            f"{file.path.name} has the tensor {unexpected[:64]!r}, which a {config.architecture} model of"
            f" {config.layers} layers does not use here",
            _OTHER_MODEL,
        )


def _tensor(file: GgufFile, name: str) -> TensorInfo:
    if name not in file.tensors:
        raise ModelError(f"{file.path.name} has no tensor {name!r}", "The file may be incomplete; download it again.")
    return file.tensors[name]


def _wrong_shape(file: GgufFile, tensor: TensorInfo, rule: str) -> ModelError:
    return ModelError(f"{file.path.name}: tensor {tensor.name!r} must have {rule}, got {tensor.shape}", _OTHER_MODEL)
