"""The contract a drafter fulfils. A drafter can be wrong at will; it can never change an answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from borrador.types import Draft, SamplingParams


class DraftSession(Protocol):
    """Drafting for one request."""

    def propose(self, context: Sequence[int], budget: int) -> Draft:
        """Propose at most `budget` tokens to follow `context` (prompt and answer so far).

        An empty draft is a legal answer. A chain unless the draft carries parents.
        """
        ...

    def observe(self, committed: Sequence[int]) -> None:
        """Learn the tokens that were committed after the last `propose`."""
        ...

    def close(self) -> None:
        """Free what belongs to this request."""
        ...


class Drafter(Protocol):
    """Lives as long as the model; opens one session per request."""

    @property
    def name(self) -> str: ...

    def open(self, params: SamplingParams, /) -> DraftSession:
        """Start drafting for a request that is sampled with `params`."""
        ...

    def step_seconds(self) -> float:
        """What one proposed token costs, measured now; 0 for a drafter that runs no model."""
        ...

    def close(self) -> None:
        """Free what the drafter holds."""
        ...
