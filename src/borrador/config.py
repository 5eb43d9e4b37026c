"""How an engine is set up. The defaults of every front end come from these fields."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from borrador.errors import UsageError
from borrador.values import flag, integer, namespace

DraftWeights = Literal["auto", "q4_0", "file"]
DRAFT_WEIGHTS: tuple[DraftWeights, ...] = ("auto", "q4_0", "file")

DEFAULT_CONTEXT = 4096
MAX_CONTEXT = 2**24
MAX_DRAFT_TOKENS = 64
_LIMITS = (
    ("threads", 1, 1024),
    ("context", 2, MAX_CONTEXT),
    ("draft_tokens", 0, MAX_DRAFT_TOKENS),
    ("draft_shortlist", 0, 2**24),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineConfig:
    """The settings of an engine; checked when built.

    Args:
        draft: drafters to use: `none`, `suffix`, `lookup`, `recycle`, `auto`, or a model's name or path; a comma list
            names several, unless it is the path of a file.
        threads: threads for the matrix work; None uses all cores that this process may use.
        context: the maximum of prompt and answer together, in tokens; None takes the model's limit, but at most 4096.
        draft_tokens: the number of tokens drafted each round, from 0 to 64; None lets measured costs decide.
        draft_shortlist: how many frequent tokens a draft model may propose, besides those of the request's own text,
            which makes its steps cheaper; 0 allows any token, None takes 32768 where that saves a tenth of a step.
        draft_weights: of a draft model: `q4_0` rounds tensors of more than five bits a weight to Q4_0, which makes its
            steps cheaper; `file` keeps all as in the file; `auto` rounds where that saves 15 % or more of a step.
        profile: save measured costs and what was learnt of drafters on disk, and start from them the next time.
        history: the name under which the token ids of answers are saved on this disk, so that later answers are
            drafted from them too; None saves nothing. See `borrador.draft.history`.

    Raises:
        UsageError: a value breaks its rule.
    """

    draft: tuple[str, ...] = ("auto",)
    threads: int | None = None
    context: int | None = None
    draft_tokens: int | None = None
    draft_shortlist: int | None = None
    draft_weights: DraftWeights = "auto"
    profile: bool = True
    history: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "draft", tuple(_split(self.draft)))
        if not self.draft or not all(self.draft):
            raise UsageError(
                "draft must name at least one drafter, and no name may be empty", "For plain decoding say none."
            )
        for name, low, high in _LIMITS:
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, integer(name, value, low, high))
        if self.draft_weights not in DRAFT_WEIGHTS:
            known = ", ".join(DRAFT_WEIGHTS)
            raise UsageError(
                f"draft_weights must be one of {known}, got {self.draft_weights!r:.40}", "Choose one of them."
            )
        flag("profile", self.profile)
        if self.history is not None:
            namespace("history", self.history)


def _split(specs: Any) -> Iterator[str]:
    names = (specs,) if isinstance(specs, str) else specs
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise UsageError(f"draft must be a name or a list of names, got {specs!r:.80}", "For plain decoding say none.")
    for name in names:
        is_file = os.path.isfile(name)  # noqa: PTH113 (unlike Path.is_file it takes names of any length)
        yield from (name,) if is_file else (part.strip() for part in name.split(","))
