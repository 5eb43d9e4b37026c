"""What can be changed in the middle of a chat: sampling parameters, and how to draft."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from borrador.config import MAX_DRAFT_TOKENS
from borrador.errors import UsageError
from borrador.types import SamplingParams
from borrador.values import integer

NAMES = (
    "temperature",
    "top_k",
    "typical_p",
    "top_p",
    "min_p",
    "repetition_penalty",
    "presence_penalty",
    "frequency_penalty",
    "penalty_window",
    "seed",
    "acceptance",
    "stop",
    "min_tokens",
    "max_tokens",
)
DRAFT_TOKENS = 4  # where drafting is on and no number is given
_DEFAULTS = SamplingParams()


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafting:
    """How answers are drafted; `auto` with the defaults.

    Attributes:
        speculate: False is off: plain decoding.
        draft_tokens: on: so many in every round; None is auto: as many as pay by measured costs, perhaps none.
    """

    speculate: bool = True
    draft_tokens: int | None = None

    @classmethod
    def parse(cls, words: str) -> Drafting:
        """`on`, `on N`, `off` or `auto`. Raises UsageError for anything else."""
        mode, _, count = words.partition(" ")
        if mode == "on":
            return cls(draft_tokens=integer("N", _whole(count), 1, MAX_DRAFT_TOKENS) if count else DRAFT_TOKENS)
        if words not in ("off", "auto"):
            raise UsageError(f"drafting is on, on N, off or auto, got {words!r:.40}", "For example: /draft off.")
        return cls(speculate=words == "auto")

    def __str__(self) -> str:
        if not self.speculate:
            return "off"
        return "auto" if self.draft_tokens is None else f"on {self.draft_tokens}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How answers are written."""

    sampling: SamplingParams = _DEFAULTS
    drafting: Drafting = field(default_factory=Drafting)

    def with_value(self, name: str, words: str) -> Settings:
        """These settings with one changed.

        Args:
            name: one of NAMES; hyphens are as good as underscores.
            words: the value as JSON, or as text; `none` and `default` are the default.

        Raises:
            UsageError: there is no such setting, or the value breaks its rule.
        """
        key = name.replace("-", "_")
        if key not in NAMES:
            near = difflib.get_close_matches(key, NAMES, 1)
            hint = f"Did you mean {near[0]}?" if near else f"There are {', '.join(NAMES)}."
            raise UsageError(f"there is no setting {name!r:.40}", hint)
        return self._with({key: getattr(_DEFAULTS, key) if words in ("none", "default") else _value(words)})

    @property
    def changed(self) -> dict[str, Any]:
        """Sampling parameters that are not at their defaults."""
        values = {name: getattr(self.sampling, name) for name in NAMES}
        return {name: value for name, value in values.items() if value != getattr(_DEFAULTS, name)}

    def as_json(self) -> dict[str, Any]:
        """All of them, as `from_json` takes them."""
        sampling = {name: getattr(self.sampling, name) for name in NAMES}
        return {**sampling, "stop": list(self.sampling.stop), "draft": str(self.drafting)}

    def from_json(self, stored: Mapping[str, Any]) -> Settings:
        """The settings stored; those that are missing stay as they are here.

        Raises:
            UsageError: a name is unknown, or a value breaks its rule.
        """
        draft = stored.get("draft", str(self.drafting))
        if unknown := stored.keys() - {*NAMES, "draft"}:
            raise UsageError(f"there is no setting {min(unknown)!r:.40}", f"There are {', '.join(NAMES)}.")
        if not isinstance(draft, str):
            raise UsageError(f"drafting is on, on N, off or auto, got {draft!r:.40}", "Correct it.")
        changed = self._with({name: value for name, value in stored.items() if name != "draft"})
        return replace(changed, drafting=Drafting.parse(draft))

    def _with(self, values: Mapping[str, Any]) -> Settings:
        return replace(self, sampling=replace(self.sampling, **values))


def _value(words: str) -> Any:
    try:
        return json.loads(words)
    except (ValueError, RecursionError):
        return words


def _whole(text: str) -> Any:
    return int(text) if text.isdecimal() else text
