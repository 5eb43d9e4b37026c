"""How an engine is set up. The defaults of every front end come from these fields."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from borrador.errors import UsageError

DEFAULT_CONTEXT = 4096
MAX_DRAFT_TOKENS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineConfig:
    """What `borrador.load` can be told; checked when built.

    Args:
        draft: drafters to use: `none`, `lookup`, `auto`, or a model's name or path; a comma list counts as several,
            unless it is the path of a file.
        threads: threads for the matrix work; None takes the cores this process may use.
        context: the most tokens of prompt and answer together; None takes the model's own limit, at most 4096.
        draft_tokens: the number of tokens drafted each round, from 0 to 64; None lets measured costs decide.

    Raises:
        UsageError: a value breaks its rule.
    """

    draft: tuple[str, ...] = ("auto",)
    threads: int | None = None
    context: int | None = None
    draft_tokens: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "draft", tuple(_split(self.draft)))
        if not self.draft or not all(self.draft):
            raise UsageError("draft must name at least one drafter, without gaps", "For plain decoding say none.")
        _require_optional_integer("threads", self.threads, 1, 1024)
        _require_optional_integer("context", self.context, 2, 2**24)
        _require_optional_integer("draft_tokens", self.draft_tokens, 0, MAX_DRAFT_TOKENS)


def _split(specs: Any) -> Iterator[str]:
    names = (specs,) if isinstance(specs, str) else specs
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise UsageError(f"draft must be a name or a list of names, got {specs!r:.80}", "For plain decoding say none.")
    for name in names:
        is_file = os.path.isfile(name)  # noqa: PTH113 (unlike Path.is_file it takes names of any length)
        yield from (name,) if is_file else (part.strip() for part in name.split(","))


def _require_optional_integer(name: str, value: object, low: int, high: int) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int):
        raise UsageError(f"{name} must be a whole number, got {value!r}", f"Give a whole number of at least {low}.")
    if not low <= value <= high:
        raise UsageError(f"{name} must be from {low} to {high}, got {value}", "Choose a value inside the limits.")
