"""A chain of draft tokens while a draft model writes it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from borrador.draft.protocol import CERTAIN, GoOn
from borrador.models.target import BestTokens
from borrador.sampling.shaping import History
from borrador.types import Draft, Float32Array

Ends = Callable[[History], bool]

_LEAST_ALTERNATIVE = 0.05


class Alternative(NamedTuple):
    """A token that may stand in the place of one that is proposed."""

    token: int
    confidence: float


class GrowingDraft:
    """Tokens after a context, each with the draft model's belief and, where it was drawn, its law.

    Args:
        context: what was committed so far.
        budget: the most tokens to propose.
        go_on: as for `DraftSession.propose`.
        ends: says after which tokens nothing is worth drafting.
        q: room for `budget` laws; None where nothing is drawn.

    Attributes:
        tokens: so far.
        ended: nothing more is to be added.
    """

    def __init__(
        self, context: Sequence[int], budget: int, go_on: GoOn, ends: Ends, q: Float32Array | None = None
    ) -> None:
        self.tokens: list[int] = []
        self.ended = budget < 1
        self._context = context
        self._budget = budget
        self._go_on = go_on
        self._ends = ends
        self._q = q
        self._confidence: list[float] = []
        self._others: list[tuple[int, Alternative]] = []

    @property
    def history(self) -> History:
        """The tokens before the next one."""
        return History(self._context, self.tokens)

    @property
    def room(self) -> int:
        """How many more tokens may be added."""
        return 0 if self.ended else self._budget - len(self.tokens)

    @property
    def law_out(self) -> Float32Array | None:
        """Where the law of the next token goes; None where nothing is drawn."""
        return None if self._q is None else self._q[len(self.tokens)]

    def add(self, token: int, confidence: float, other: Alternative | None = None) -> None:
        """Add a token, whose law has been written where it was drawn, and what may stand in its place."""
        if other is not None:
            self._others.append((len(self.tokens), other))
        self.tokens.append(token)
        self._confidence.append(confidence)
        goes_on = self._go_on(confidence)
        self.ended = not goes_on or len(self.tokens) == self._budget or self._ends(self.history)

    def add_certain(self, tokens: Sequence[int]) -> list[int]:
        """Add tokens to which there is no alternative, as long as they may be added; those that were."""
        added: list[int] = []
        for token in tokens:
            if self.ended:
                break
            if (law_out := self.law_out) is not None:
                law_out.fill(0.0)
                law_out[token] = 1.0
            self.add(token, CERTAIN)
            added.append(token)
        return added

    def finish(self, drafter: str) -> Draft:
        """The chain, and behind it what may stand in the place of its tokens, the most hopeful first, as far as the
        budget goes."""
        others = self._most_hopeful(self._budget - len(self.tokens))
        return Draft(
            tokens=(*self.tokens, *(other.token for _, other in others)),
            parents=(*range(-1, len(self.tokens) - 1), *(place - 1 for place, _ in others)) if others else None,
            q=None if self._q is None else self._q[: len(self.tokens)],
            drafter=drafter,
            confidence=(*self._confidence, *(other.confidence for _, other in others)),
        )

    def _most_hopeful(self, count: int) -> list[tuple[int, Alternative]]:
        def hope(entry: tuple[int, Alternative]) -> float:
            place, other = entry
            return other.confidence * math.prod(self._confidence[:place])

        return sorted(self._others, key=hope, reverse=True)[: max(count, 0)]


def room_for_laws(known: Float32Array, count: int, vocabulary_size: int) -> Float32Array:
    """Room for so many laws: what is known already where it is large enough."""
    return known if len(known) >= count else np.empty((count, vocabulary_size), np.float32)


def second_of(best: BestTokens, row: int) -> Alternative | None:
    """The second likeliest token of a row; None where it is unlikely."""
    token = int(best.ids[row, 1])
    if token < 0:
        return None
    probability = math.exp(best.logits[row, 1] - best.normalisers[row])
    return Alternative(token, probability) if probability >= _LEAST_ALTERNATIVE else None
