"""What could be done for the models on this disk, and for what is learnt of them."""

from __future__ import annotations

from borrador.doctor.facts import Facts, ModelFile
from borrador.doctor.rule import Advice, Rule
from borrador.models.catalogue import CATALOGUE, DEFAULT_MODEL

_DRAFT_MODEL = "qwen2.5-coder-0.5b"
_LARGE_BYTES = 800 << 20  # below, a draft model is hardly cheaper than the model itself
_DRAFT_SHARE = 0.5


def subject(facts: Facts) -> ModelFile | None:
    """The model that was tried, or else the largest one that fits."""
    if facts.trial is not None:
        return next((model for model in facts.models if model.name == facts.trial.model), None)
    fitting = [model for model in facts.models if model.whole and fits(model, facts)]
    return max(fitting, key=lambda model: model.file_bytes, default=None)


def fits(model: ModelFile, facts: Facts) -> bool | None:
    """Whether the weights fit into free memory; None where that is not known."""
    free = facts.memory.free_bytes
    return None if free is None else model.file_bytes < free


def warn_of_no_model(facts: Facts) -> Advice | None:
    if facts.models:
        return None
    megabytes = CATALOGUE[DEFAULT_MODEL].size_bytes / 1e6
    return Advice(
        topic="no-model",
        finding="there is no model on this disk",
        remedy=f"Fetch one: borrador pull {DEFAULT_MODEL} ({megabytes:.0f} MB); `borrador list` shows others.",
    )


def warn_of_damaged_models(facts: Facts) -> Advice | None:
    damaged = [model.name for model in facts.models if not model.whole]
    if not damaged:
        return None
    return Advice(
        topic="damaged-model",
        finding=f"{', '.join(damaged)} on this disk is not as long as it must be",
        remedy=f"Replace it: borrador pull {damaged[0]}",
    )


def warn_of_large_models(facts: Facts) -> Advice | None:
    large = [model for model in facts.models if fits(model, facts) is False]
    if not large or facts.memory.free_bytes is None:
        return None
    names = ", ".join(f"{model.name} ({model.file_bytes / 1e9:.1f} GB)" for model in large)
    return Advice(
        topic="memory",
        finding=f"{names} would not fit into the {facts.memory.free_bytes / 1e9:.1f} GB of memory that are free",
        remedy="Close other programs, allow the container more memory, or use a smaller model.",
    )


def suggest_draft_model(facts: Facts) -> Advice | None:
    """A model with another vocabulary drafts too, so that any small one will do."""
    target = subject(facts)
    if target is None or target.file_bytes < _LARGE_BYTES:
        return None
    if any(model.whole and model.file_bytes <= _DRAFT_SHARE * target.file_bytes for model in facts.models):
        return None
    return Advice(
        topic="draft-model",
        finding=f"no model on this disk is small enough to draft for {target.name}",
        remedy=f"Fetch one: borrador pull {_DRAFT_MODEL}; then run with -d auto,{_DRAFT_MODEL}",
    )


def suggest_plan(facts: Facts) -> Advice | None:
    target = subject(facts)
    if target is None or target.planned:
        return None
    drafts = _draft_for(target, facts)
    return Advice(
        topic="plan",
        finding=f"it was not measured here which drafters suit {target.name} best",
        remedy=f"Run: borrador plan -m {target.name}{f' -d auto,{drafts}' if drafts else ''}",
    )


def _draft_for(target: ModelFile, facts: Facts) -> str:
    """The largest model of at most half the target's size, for a target that is large enough for one."""
    small = [model for model in facts.models if model.whole and model.file_bytes <= _DRAFT_SHARE * target.file_bytes]
    if target.file_bytes < _LARGE_BYTES or not small:
        return ""
    return max(small, key=lambda model: model.file_bytes).name


def warn_of_read_only_folders(facts: Facts) -> Advice | None:
    closed = [folder for folder in facts.folders if not folder.writable and folder.purpose == "profiles"]
    if not closed:
        return None
    return Advice(
        topic="profiles",
        finding=f"{closed[0].path} cannot be written, so that costs and drafters are learnt anew in every start",
        remedy="Change its permissions, or set BORRADOR_PROFILES to another folder.",
    )


MODEL_RULES: tuple[Rule, ...] = (
    warn_of_no_model,
    warn_of_damaged_models,
    warn_of_large_models,
    suggest_draft_model,
    suggest_plan,
    warn_of_read_only_folders,
)
