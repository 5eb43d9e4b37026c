"""Drafts recycled from passes that were made anyway: trees of tokens that the target held likely when it last met the
same words (Token Recycling: Luo et al., arXiv 2408.08696)."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Sequence

from borrador.draft.protocol import GoOn, Price, StatelessSession, always
from borrador.draft.successors import LONGEST_TAIL, Successors, SuccessorTable, Tail, last_of
from borrador.models.target import BestTokens
from borrador.sampling.shaping import Shaper
from borrador.types import Draft

SUCCESSORS = 8
_UNLIKELY = math.log(100.0)  # a successor so much less likely than the first is not worth a row
_LEAST_SURVIVAL = 0.02  # of a drafted token


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
        self._table = SuccessorTable()
        self._copied = 0

    def propose(self, context: Sequence[int], budget: int, _go_on: GoOn = always) -> Draft:
        """The tree of at most `budget` tokens that are likeliest to be right, the likeliest first.

        Confidence is a token's probability in the table.
        """
        self._copy(context)
        tokens: list[int] = []
        parents: list[int] = []
        confidence: list[float] = []
        for token, parent, probability in self._grow(context, budget):
            tokens.append(token)
            parents.append(parent)
            confidence.append(probability)
        if not tokens:
            return Draft(drafter="recycle")
        return Draft(tokens=tuple(tokens), parents=tuple(parents), drafter="recycle", confidence=tuple(confidence))

    def hint(self, context: Sequence[int], path: Sequence[int], count: int) -> tuple[int, ...]:
        """The tokens that are likeliest to follow uncommitted ones, each behind the one before it.

        Args:
            context: prompt and answer so far.
            path: uncommitted tokens behind it.
            count: at most so many tokens; fewer where nothing is known to follow.
        """
        self._copy(context)
        tail = last_of((*context[-LONGEST_TAIL:], *path))
        chain: list[int] = []
        while len(chain) < count and (following := self._table.following(tail)):
            chain.append(max(following, key=following.__getitem__))
            tail = last_of((*tail, chain[-1]))
        return tuple(chain)

    def learn_successors(self, context: Sequence[int], draft: Draft, best: BestTokens) -> None:
        tails = [last_of(context)]
        for token, parent in zip(draft.tokens, draft.parent_indices, strict=True):
            tails.append(last_of((*tails[parent + 1], token)))
        for tail, ids, logits in zip(tails, best.ids.tolist(), best.logits.tolist(), strict=True):
            if ids[0] >= 0:
                self._table.learn(tail, _likely(ids, logits[:SUCCESSORS]))

    def close(self) -> None:
        self._table.clear()

    def _copy(self, context: Sequence[int]) -> None:
        """Learn what followed what in the part of the context that is new."""
        for end in range(max(self._copied, 1), len(context)):
            self._table.copy(tuple(context[max(0, end - LONGEST_TAIL) : end]), context[end])
        self._copied = len(context)

    def _grow(self, context: Sequence[int], budget: int) -> Iterator[tuple[int, int, float]]:
        """Tokens of a tree with parent and probability, by descending product of the probabilities on their paths."""
        heap: list[tuple[float, int, int, int, Tail, float]] = []
        tail, parent, survival = last_of(context), -1, 1.0
        met = 0
        for index in range(budget):
            for token, probability in self._table.following(tail).items():
                if survival * probability > _LEAST_SURVIVAL:
                    met += 1  # decides between equals, so that the first met comes first
                    heapq.heappush(heap, (-survival * probability, met, token, parent, tail, probability))
            if not heap:
                return
            negative, _, token, above, tail, probability = heapq.heappop(heap)
            yield token, above, probability
            survival, parent, tail = -negative, index, last_of((*tail, token))


def _likely(ids: Sequence[int], logits: Sequence[float]) -> Successors:
    """Those of a row's best tokens, most likely first, that are worth a row, with their probabilities among these."""
    least = logits[0] - _UNLIKELY
    weights = [math.exp(logit - logits[0]) for logit in logits if logit >= least]
    total = sum(weights)
    return tuple((token, weight / total) for token, weight in zip(ids, weights, strict=False))
