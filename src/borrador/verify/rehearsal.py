"""Drafters that know the answer and are wrong on purpose: every pattern of accepted and refused tokens."""

from __future__ import annotations

from collections.abc import Sequence

from borrador.draft.protocol import GoOn, Price, StatelessSession, always
from borrador.sampling.shaping import Shaper
from borrador.types import Draft

_SPREAD = 2654435761  # Knuth's multiplicative hash


class RehearsedDrafter(StatelessSession):
    """Proposes the known answer with a wrong token here and there, as a chain or as a tree with wrong branches.

    Args:
        name: shown in reports.
        vocabulary_size: of the target.
        branches: a tree, in which a wrong token stands beside each token and each wrong one has a child of its own.

    Attributes:
        context: the prompt and the answer, as plain decoding wrote it.
    """

    def __init__(self, name: str, vocabulary_size: int, *, branches: bool) -> None:
        self.name = name
        self.context: Sequence[int] = ()
        self._vocabulary_size = vocabulary_size
        self._branches = branches

    def open(self, _shaper: Shaper, /) -> RehearsedDrafter:
        return self

    def price(self) -> Price:
        return Price()

    def propose(self, context: Sequence[int], budget: int, _go_on: GoOn = always) -> Draft:
        position = len(context)
        known = self.context[position : position + budget]
        right = [self._or_wrong(token, position + index) for index, token in enumerate(known)]
        if not self._branches:
            return Draft(tokens=tuple(right), drafter=self.name)
        tokens: list[int] = []
        parents: list[int] = []
        parent = -1
        for token in right:
            wrong = (token + 1) % self._vocabulary_size
            here = len(tokens)
            tokens += [wrong, token, (wrong + 1) % self._vocabulary_size]
            parents += [parent, parent, here]
            parent = here + 1
        return Draft(tokens=tuple(tokens), parents=tuple(parents), drafter=self.name).first(budget)

    def _or_wrong(self, token: int, position: int) -> int:
        """The token, or in about one place of four another one."""
        chance = position * _SPREAD % 2**32
        return (token + 1 + chance % (self._vocabulary_size - 1)) % self._vocabulary_size if chance < 2**30 else token
