"""Options that belong together: a command takes a group of them as one parameter."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields, is_dataclass
from typing import Any, get_type_hints

from borrador.cli import options as opt
from borrador.cli import token_options as tok
from borrador.config import EngineConfig
from borrador.draft.registry import require_use_of_history
from borrador.errors import UsageError

Command = Callable[..., None]


@dataclass(frozen=True, kw_only=True)
class DraftOptions:
    """What drafts, how much, and from what."""

    draft: opt.PlannedDraftOption = None
    draft_tokens: opt.DraftTokensOption = opt.ENGINE.draft_tokens
    draft_shortlist: opt.DraftShortlistOption = opt.ENGINE.draft_shortlist
    draft_weights: opt.DraftWeightsOption = opt.ENGINE.draft_weights
    history: opt.HistoryOption = opt.ENGINE.history


@dataclass(frozen=True, kw_only=True)
class MachineOptions:
    """What of the machine is used, and whether its measurements are kept."""

    threads: opt.ThreadsOption = opt.ENGINE.threads
    context: opt.ContextOption = opt.ENGINE.context
    profile: opt.ProfileOption = opt.ENGINE.profile


@dataclass(frozen=True, kw_only=True)
class ShapingOptions:
    """Sampling parameters that change the distribution, named as in SamplingParams."""

    temperature: opt.TemperatureOption = opt.SAMPLING.temperature
    top_k: opt.TopKOption = opt.SAMPLING.top_k
    top_p: opt.TopPOption = opt.SAMPLING.top_p
    min_p: opt.MinPOption = opt.SAMPLING.min_p
    typical_p: tok.TypicalPOption = opt.SAMPLING.typical_p
    repetition_penalty: tok.RepetitionPenaltyOption = opt.SAMPLING.repetition_penalty
    presence_penalty: tok.PresencePenaltyOption = opt.SAMPLING.presence_penalty
    frequency_penalty: tok.FrequencyPenaltyOption = opt.SAMPLING.frequency_penalty
    penalty_window: tok.PenaltyWindowOption = opt.SAMPLING.penalty_window

    def as_params(self) -> dict[str, Any]:
        """Arguments of SamplingParams."""
        return asdict(self)


def engine_config(drafts: DraftOptions, machine: MachineOptions) -> EngineConfig:
    """The engine that these options set up.

    Raises:
        UsageError: a value breaks its rule, or draft tokens or a history are asked for and no drafter uses them.
    """
    config = EngineConfig(
        draft=tuple(drafts.draft) if drafts.draft else opt.ENGINE.draft,
        threads=machine.threads,
        context=machine.context,
        draft_tokens=drafts.draft_tokens,
        draft_shortlist=drafts.draft_shortlist,
        draft_weights=drafts.draft_weights,
        profile=machine.profile,
        history=drafts.history,
    )
    if config.history is not None:
        require_use_of_history(config.draft)
    if config.draft_tokens and config.draft == ("none",):
        raise UsageError(
            f"--draft-tokens {config.draft_tokens} needs a drafter, and --draft is none", "Give one with -d."
        )
    return config


def spread_groups(command: Command) -> Command:
    """The command with the fields of each group among its parameters in the group's place, as options are read.

    A group is a dataclass whose fields are annotated as a command's parameters are.
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}

    @functools.wraps(command)
    def spread(**options: Any) -> None:
        gathered = {
            name: group(**{field.name: options.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        command(**options, **gathered)

    parameters = list(_spread_parameters(command, hints))
    spread.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    spread.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return spread


def _spread_parameters(command: Command, hints: dict[str, Any]) -> Iterator[inspect.Parameter]:
    for parameter in inspect.signature(command).parameters.values():
        hint = hints[parameter.name]
        if not is_dataclass(hint):
            yield parameter.replace(annotation=hint, kind=inspect.Parameter.KEYWORD_ONLY)
            continue
        of_fields = get_type_hints(hint, include_extras=True)
        for field in fields(hint):
            yield inspect.Parameter(
                field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=of_fields[field.name]
            )
