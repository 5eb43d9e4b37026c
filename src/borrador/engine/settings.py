"""What `borrador plan` found best for a model on this machine, and its use where the user names no drafter."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

from borrador.config import MAX_DRAFT_TOKENS, EngineConfig
from borrador.draft.plugin import find_plugins
from borrador.draft.registry import BUILT_IN
from borrador.engine.profile import Profile
from borrador.models.catalogue import CATALOGUE
from borrador.models.weights import default_isa, default_threads

_MOST_DRAFTERS = 16
_LONGEST_NAME = 4096
_DEFAULTS = EngineConfig()
_log = logging.getLogger("borrador")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How to draft for a model.

    Attributes:
        draft: drafters, as `EngineConfig.draft` names them; models that are not in the catalogue by absolute paths.
        draft_tokens: drafted each round; None lets measured costs decide.
        speedup: over plain decoding, as it was measured.
        date: when that was, as YYYY-MM-DD.
    """

    draft: tuple[str, ...]
    draft_tokens: int | None
    speedup: float
    date: str

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "draft": list(self.draft)}

    @classmethod
    def from_json(cls, stored: Any) -> Settings:
        """What `as_json` gave. Raises ValueError, KeyError or TypeError for anything else."""
        draft, draft_tokens, speedup = stored["draft"], stored["draft_tokens"], stored["speedup"]
        names = isinstance(draft, list) and all(
            isinstance(name, str) and 0 < len(name) <= _LONGEST_NAME for name in draft
        )
        if not names or not 0 < len(draft) <= _MOST_DRAFTERS:
            raise ValueError("draft must name drafters")
        whole = isinstance(draft_tokens, int) and not isinstance(draft_tokens, bool)
        if draft_tokens is not None and not (whole and 0 < draft_tokens <= MAX_DRAFT_TOKENS):
            raise ValueError("draft_tokens must be a number of tokens")
        if not isinstance(speedup, float) or not 0.0 < speedup < math.inf:
            raise ValueError("speedup must be a ratio")
        when = date.fromisoformat(stored["date"]).isoformat()
        return cls(draft=tuple(draft), draft_tokens=draft_tokens, speedup=speedup, date=when)


def read_settings(profile: Profile) -> Settings | None:
    """The settings that this profile holds; None where it holds none that are whole."""
    try:
        return Settings.from_json(profile.read()["settings"])
    except (ValueError, KeyError, TypeError):
        return None


def follow_plan(model: Path, config: EngineConfig) -> tuple[EngineConfig, Settings | None]:
    """The configuration with what a plan recommends for this model, and these settings.

    The configuration stays as it is, and there are no settings, where it names drafters, a draft length, a shortlist or
    a history itself, where it turns profiles off, and where there is no plan. Of the plan's drafters those that are no
    longer there are left out, and a message says so (logger `borrador`); costs then decide how many tokens to draft.

    Raises:
        UsageError: the folder of profiles is not known.
    """
    named = replace(config, threads=None, context=None) != _DEFAULTS
    profile = None if named else Profile.of(model, isa=default_isa(), threads=config.threads or default_threads())
    settings = read_settings(profile) if profile is not None else None
    if settings is None:
        return config, None
    present = _present(settings.draft)
    if not present:
        return config, None
    if len(present) < len(settings.draft):
        settings = replace(settings, draft=present, draft_tokens=None)
    return replace(config, draft=settings.draft, draft_tokens=settings.draft_tokens), settings


def _present(names: Sequence[str]) -> tuple[str, ...]:
    plugins = find_plugins()
    present = tuple(name for name in names if name in ("none", *BUILT_IN, *plugins) or _is_on_disk(name))
    for name in names:
        if name not in present:
            _log.warning("the plan's drafter %s is not there any more and is left out; plan again", name)
    return present


def _is_on_disk(name: str) -> bool:
    path = CATALOGUE[name].path if name in CATALOGUE else Path(name)
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False
