"""Drafts recycled from passes that were made anyway: trees of tokens that the target held likely when it last met the
same words (Token Recycling: Luo et al., arXiv 2408.08696)."""

from __future__ import annotations

from collections.abc import Sequence

from borrador import _native
from borrador.draft.protocol import GoOn, Price, StatelessSession, always
from borrador.models.target import BestTokens
from borrador.sampling.shaping import Shaper
from borrador.types import Draft

SUCCESSORS: int = _native.most_successors
MOST_TAILS = 1 << 16  # of one to three tokens, that are remembered; and of those before them as many more at most


class RecycleDrafter:
    """Learns from the passes of a request; nothing is shared between requests."""

    name = "recycle"

    def open(self, _shaper: Shaper, /) -> RecycleSession:
        return RecycleSession()

    def price(self) -> Price:
        return Price()

    def close(self) -> None:
        pass


class RecycleSession(StatelessSession):
    """A table of successors, of what the target held likely in this request and of what the context itself says.

    Attributes:
        successors: how many tokens of each row of a pass are learnt.
    """

    def __init__(self) -> None:
        self.successors = SUCCESSORS
        self._table = _native.SuccessorTable(MOST_TAILS)

    def propose(self, context: Sequence[int], budget: int, _go_on: GoOn = always) -> Draft:
        """The tree of at most `budget` tokens that are likeliest to be right, the likeliest first.

        Confidence is a token's probability in the table.
        """
        tokens, parents, confidence = self._table.grow(context, budget)
        return Draft(tokens=tokens, parents=parents or None, drafter="recycle", confidence=confidence)

    def hint(self, context: Sequence[int], path: Sequence[int], count: int) -> tuple[int, ...]:
        """The tokens that are likeliest to follow uncommitted ones, each behind the one before it.

        Args:
            context: prompt and answer so far.
            path: uncommitted tokens behind it.
            count: at most so many tokens; fewer where nothing is known to follow.
        """
        return self._table.follow(context, path, count)

    def learn_successors(self, context: Sequence[int], draft: Draft, best: BestTokens) -> None:
        self._table.learn(context, draft.tokens, draft.parents, best.ids, best.logits)

    def close(self) -> None:
        self._table.clear()
