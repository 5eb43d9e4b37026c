"""What a model is: the numbers of its architecture, read from a GGUF file and checked against its tensors."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from borrador.errors import ModelError
from borrador.models import positions
from borrador.models.families import FAMILIES, Family
from borrador.models.gguf import GgufFile, TensorFormat, TensorInfo

_MAX_LAYERS = 1024
_MAX_WIDTH = 1 << 17
_MAX_EXPERTS = 4096
_MAX_CONTEXT = 1 << 24
_OTHER_MODEL = "Use another file of the model, or another model."


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """The shape of a transformer; its family is one of `FAMILIES`.

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
        attention_scale: factor on attention scores; 0 is 1 / sqrt(head_dim).
        attention_soft_cap: scores become cap * tanh(score / cap); 0 where they stay.
        logit_soft_cap: the same for logits.
        windows: positions that each layer's attention sees, the row's own among them, 0 for all; empty: all see all.
        rope_local_base: base frequency of the layers with a window; 0 where it is that of the others.
        rope_factors: tensors with divisors of the rotary frequencies. Two of them are those of short and of long
            caches.
        rope_short_context: the most tokens of a short cache; 0 where caches are alike.
        rope_magnitude: factor on rotated queries and keys.
        experts: feed-forward layers that a router chooses from; 0 where there is one for all.
        experts_used: those that each row goes through, weighted by their probabilities.
        expert_weights_normalised: the weights of a row's experts sum to 1, before the scale.
        expert_weights_scale: factor on these weights.
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
    attention_scale: float = 0.0
    attention_soft_cap: float = 0.0
    logit_soft_cap: float = 0.0
    windows: tuple[int, ...] = ()
    rope_local_base: float = 0.0
    rope_factors: tuple[str, ...] = ()
    rope_short_context: int = 0
    rope_magnitude: float = 1.0
    experts: int = 0
    experts_used: int = 0
    expert_weights_normalised: bool = True
    expert_weights_scale: float = 1.0

    @property
    def family(self) -> Family:
        return FAMILIES[self.architecture]

    @property
    def embedding_scale(self) -> float:
        return math.sqrt(self.width) if self.family.scaled_embedding else 1.0

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
        yield "token_embd.weight", (self.width, self.vocabulary_size)
        yield "output_norm.weight", (self.width,)
        if not self.tied_output:
            yield "output.weight", (self.width, self.vocabulary_size)
        for name in self.rope_factors:
            yield name, (self.rope_dim // 2,)
        for layer in range(self.layers):
            for role, shape in (*self._attention_shapes(), *self._ffn_shapes()):
                yield f"blk.{layer}.{role}", shape

    def _attention_shapes(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        queries, keys = self.heads * self.head_dim, self.kv_heads * self.head_dim
        yield "attn_norm.weight", (self.width,)
        projections = (
            (("qkv", queries + 2 * keys),) if self.family.fused else (("q", queries), ("k", keys), ("v", keys))
        )
        for name, size in projections:
            yield f"attn_{name}.weight", (self.width, size)
            if self.attention_bias:
                yield f"attn_{name}.bias", (size,)
        if self.family.head_norms:
            yield "attn_q_norm.weight", (self.head_dim,)
            yield "attn_k_norm.weight", (self.head_dim,)
        yield "attn_output.weight", (queries, self.width)
        if self.family.sandwich_norms:
            yield "post_attention_norm.weight", (self.width,)

    def _ffn_shapes(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        yield "ffn_norm.weight", (self.width,)
        many, each = ("_exps", (self.experts,)) if self.experts else ("", ())
        if self.experts:
            yield "ffn_gate_inp.weight", (self.width, self.experts)
        if not self.family.fused:
            yield f"ffn_gate{many}.weight", (self.width, self.ffn_width, *each)
        yield f"ffn_up{many}.weight", (self.width, self.ffn_width * (2 if self.family.fused else 1), *each)
        yield f"ffn_down{many}.weight", (self.ffn_width, self.width, *each)
        if self.family.sandwich_norms:
            yield "post_ffw_norm.weight", (self.width,)

    def rope_of(self, layer: int) -> int:
        """Which rope a layer turns its heads by: 0 the file's, 1 the one of layers with a window, -1 none."""
        period = self.family.ropeless_period
        if period and (layer + 1) % period == 0:
            return -1
        return int(bool(self.rope_local_base) and self.window_of(layer) > 0)

    def window_of(self, layer: int) -> int:
        """Positions that a layer's attention sees; 0 is all."""
        return self.windows[layer] if self.windows else 0


def _read(file: GgufFile, family: str) -> ModelConfig:
    width = file.integer(f"{family}.embedding_length", low=2, high=_MAX_WIDTH)
    heads = file.integer(f"{family}.attention.head_count", low=1, high=width)
    head_dim = file.integer(f"{family}.attention.key_length", width // heads, low=2, high=width)
    layers = file.integer(f"{family}.block_count", low=1, high=_MAX_LAYERS)
    experts = file.integer(f"{family}.expert_count", 0, high=_MAX_EXPERTS)
    return ModelConfig(
        architecture=family,
        layers=layers,
        width=width,
        heads=heads,
        kv_heads=file.integer(f"{family}.attention.head_count_kv", heads, low=1, high=heads),
        head_dim=head_dim,
        ffn_width=_ffn_width(file, family, experts),
        context_length=file.integer(f"{family}.context_length", low=1, high=_MAX_CONTEXT),
        vocabulary_size=_vocabulary_size(file),
        norm_epsilon=file.number(f"{family}.attention.layer_norm_rms_epsilon", low=1e-12, high=0.1),
        rope_base=file.number(f"{family}.rope.freq_base", 10000.0, low=1.0, high=1e12),
        rope_dim=file.integer(f"{family}.rope.dimension_count", head_dim, low=2, high=head_dim),
        rope_interleaved=FAMILIES[family].rope_interleaved,
        rope_freq_scale=positions.rope_freq_scale(file, family),
        attention_bias="blk.0.attn_q.bias" in file.tensors,
        tied_output="output.weight" not in file.tensors,
        attention_scale=_attention_scale(file, family, layers, width / heads),
        attention_soft_cap=file.number(f"{family}.attn_logit_softcapping", 0.0, low=0.0, high=1e6),
        logit_soft_cap=file.number(f"{family}.final_logit_softcapping", 0.0, low=0.0, high=1e6),
        windows=positions.windows(file, family, layers),
        rope_local_base=positions.rope_local_base(file, family),
        rope_factors=positions.rope_factors(file),
        rope_short_context=positions.rope_short_context(file, family),
        rope_magnitude=file.number(f"{family}.rope.scaling.attn_factor", 1.0, low=0.01, high=100.0),
        experts=experts,
        experts_used=file.integer(f"{family}.expert_used_count", low=1, high=experts) if experts else 0,
        expert_weights_normalised=file.flag(f"{family}.expert_weights_norm", True),
        expert_weights_scale=file.number(f"{family}.expert_weights_scale", 1.0, low=1e-6, high=1e6),
    )


def _ffn_width(file: GgufFile, family: str, experts: int) -> int:
    dense = file.integer(f"{family}.feed_forward_length", low=1, high=8 * _MAX_WIDTH)
    return file.integer(f"{family}.expert_feed_forward_length", dense, low=1, high=8 * _MAX_WIDTH) if experts else dense


def _attention_scale(file: GgufFile, family: str, layers: int, width_of_head: float) -> float:
    """The largest Gemma of each generation scales by width / heads; its files do not say so."""
    default = 1 / math.sqrt(width_of_head) if layers == FAMILIES[family].largest_layers else 0.0
    return file.number(f"{family}.attention.scale", default, low=0.0, high=100.0)


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


def _refuse_unsupported(file: GgufFile, family: str) -> None:
    """Features of these families that would change the result if they were ignored."""
    if not FAMILIES[family].experts and file.integer(f"{family}.expert_count", 0):
        raise ModelError(f"{file.path.name} is a mixture of experts, which is not supported for {family}", _OTHER_MODEL)
    if not file.flag(f"{family}.attention.causal", True):
        raise ModelError(f"{file.path.name} is an embedding model and cannot write text", _OTHER_MODEL)


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
