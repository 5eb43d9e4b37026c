"""What a file says about positions: the windows of its layers and the scaling of its rotary frequencies."""

from __future__ import annotations

from borrador.errors import ModelError
from borrador.models.families import FAMILIES
from borrador.models.gguf import GgufFile

_OTHER_MODEL = "Use another file of the model, or another model."
_MAX_LAYERS = 1024
_MAX_CONTEXT = 1 << 24
_LLAMA3_FACTORS = ("rope_freqs.weight",)
_LONGROPE_FACTORS = ("rope_factors_short.weight", "rope_factors_long.weight")


def windows(file: GgufFile, family: str, layers: int) -> tuple[int, ...]:
    """The window of each layer, 0 where it sees everything; empty where the file has none.

    The file's pattern is a period, whose last layer sees everything, or says of each layer whether it has a window.
    """
    window = file.integer(f"{family}.attention.sliding_window", 0)
    if not window:
        return ()
    if not FAMILIES[family].windows:  # which layers have it is not known
        raise ModelError(
            f"{file.path.name} uses sliding-window attention, which is not supported for {family}", _OTHER_MODEL
        )
    key = f"{family}.attention.sliding_window_pattern"
    pattern = file.metadata.get(key)
    if isinstance(pattern, list):
        if len(pattern) != layers or not all(isinstance(item, bool) for item in pattern):
            raise ModelError(
                f"{file.path.name}: {key!r} must hold true or false for each of {layers} layers", _OTHER_MODEL
            )
        return tuple(window if windowed else 0 for windowed in pattern)
    period = file.integer(key, FAMILIES[family].full_attention_period, high=_MAX_LAYERS)
    return tuple(0 if period and (layer + 1) % period == 0 else window for layer in range(layers))


def rope_factors(file: GgufFile) -> tuple[str, ...]:
    """Names of the tensors with divisors of the rotary frequencies: none, llama3's, or longrope's two."""
    found = tuple(name for name in _LLAMA3_FACTORS + _LONGROPE_FACTORS if name in file.tensors)
    if found not in ((), _LLAMA3_FACTORS, _LONGROPE_FACTORS):
        raise ModelError(f"{file.path.name} has factors of several rope scalings, or one of a pair", _OTHER_MODEL)
    return found


def rope_short_context(file: GgufFile, family: str) -> int:
    """The longest cache that takes longrope's short factors; 0 without longrope."""
    if _LONGROPE_FACTORS[1] not in file.tensors:
        return 0
    trained = file.integer(f"{family}.context_length")
    return file.integer(f"{family}.rope.scaling.original_context_length", trained, low=1, high=_MAX_CONTEXT)


def rope_local_base(file: GgufFile, family: str) -> float:
    """The rotary base of layers with a window; 0 where it is that of the others."""
    default = FAMILIES[family].local_rope_base
    return file.number(f"{family}.rope.freq_base_swa", default, low=1.0, high=1e12) if default else 0.0


def rope_freq_scale(file: GgufFile, family: str) -> float:
    """Factor on positions. llama.cpp writes its inverse as `scaling.factor`, and wrote it as `scale_linear` before."""
    kind = file.text(f"{family}.rope.scaling.type", "linear")
    if kind in ("llama3", "longrope") and rope_factors(file):
        return 1.0
    if kind not in ("none", "linear"):
        raise ModelError(
            f"{file.path.name} needs the rope scaling {kind[:64]!r}, which is not supported",
            "Supported are none, linear, and llama3 and longrope with factors in the file; use another model.",
        )
    legacy = file.number(f"{family}.rope.scale_linear", 1.0, low=0.0, high=1e6)
    factor = file.number(f"{family}.rope.scaling.factor", legacy, low=0.0, high=1e6)
    return 1.0 if kind == "none" or factor == 0.0 else 1.0 / factor
