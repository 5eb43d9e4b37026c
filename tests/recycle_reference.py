"""Trees of recycled successors, grown in the plainest way: what the native table must give, token for token."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Sequence

Tail = tuple[int, ...]
Successors = tuple[tuple[int, float], ...]

LONGEST_TAIL = 3
SUCCESSORS = 8
_SEEN = (0.0, 0.5, 0.6, 0.5)
_COPIED = (0.0, 0.2, 0.4, 0.5)
_UNLIKELY = math.log(100.0)
_LEAST_SURVIVAL = 0.02


def last_of(tokens: Sequence[int]) -> Tail:
    return tuple(tokens[-LONGEST_TAIL:])


class ReferenceTable:
    """For every tail a tuple of what a model held likely behind it, or else the token that last followed it."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._recent: dict[Tail, int | Successors] = {}
        self._older: dict[Tail, int | Successors] = {}
        self._copied = 0

    def __len__(self) -> int:
        return len(self._recent) + len(self._older)

    def grow(self, context: Sequence[int], budget: int) -> tuple[tuple[int, ...], tuple[int, ...], tuple[float, ...]]:
        self._read(context)
        tree = list(self._grow(context, budget))
        tokens, parents, confidence = zip(*tree, strict=True) if tree else ((), (), ())
        return tokens, parents, confidence

    def follow(self, context: Sequence[int], path: Sequence[int], count: int) -> tuple[int, ...]:
        self._read(context)
        tail = last_of((*context[-LONGEST_TAIL:], *path))
        chain: list[int] = []
        while len(chain) < count and (following := self.following(tail)):
            chain.append(max(following, key=following.__getitem__))
            tail = last_of((*tail, chain[-1]))
        return tuple(chain)

    def learn(
        self,
        context: Sequence[int],
        tokens: Sequence[int],
        parents: Sequence[int] | None,
        ids: Sequence[Sequence[int]],
        logits: Sequence[Sequence[float]],
    ) -> None:
        tails = [last_of(context)]
        for token, parent in zip(tokens, range(-1, len(tokens) - 1) if parents is None else parents, strict=True):
            tails.append(last_of((*tails[parent + 1], token)))
        for tail, row_ids, row_logits in zip(tails, ids, logits, strict=True):
            if row_ids[0] >= 0:
                self._learn(tail, _likely(row_ids, row_logits[:SUCCESSORS]))

    def following(self, tail: Tail) -> dict[int, float]:
        found: dict[int, float] = {}
        left = 1.0
        for start in range(len(tail)):
            entry = self._get(tail[start:])
            if entry is None:
                continue
            if isinstance(entry, int):
                share = left * _COPIED[len(tail) - start]
                found[entry] = found.get(entry, 0.0) + share
            else:
                share = left * _SEEN[len(tail) - start]
                for token, probability in entry:
                    found[token] = found.get(token, 0.0) + share * probability
            left -= share
        return found

    def _read(self, context: Sequence[int]) -> None:
        for end in range(max(self._copied, 1), len(context)):
            self._copy(tuple(context[max(0, end - LONGEST_TAIL) : end]), context[end])
        self._copied = len(context)

    def _grow(self, context: Sequence[int], budget: int) -> Iterator[tuple[int, int, float]]:
        heap: list[tuple[float, int, int, int, Tail, float]] = []
        tail, parent, survival = last_of(context), -1, 1.0
        met = 0
        for index in range(budget):
            for token, probability in self.following(tail).items():
                if survival * probability > _LEAST_SURVIVAL:
                    met += 1  # decides between equals, so that the first met comes first
                    heapq.heappush(heap, (-survival * probability, met, token, parent, tail, probability))
            if not heap:
                return
            negative, _, token, above, tail, probability = heapq.heappop(heap)
            yield token, above, probability
            survival, parent, tail = -negative, index, last_of((*tail, token))

    def _learn(self, tail: Tail, successors: Successors) -> None:
        known = self._with_room()
        for start in range(len(tail)):
            known[tail[start:]] = successors

    def _copy(self, tail: Tail, token: int) -> None:
        known = self._with_room()
        for start in range(len(tail)):
            key = tail[start:]
            if not isinstance(self._get(key), tuple):
                known[key] = token

    def _get(self, key: Tail) -> int | Successors | None:
        entry = self._recent.get(key)
        return self._older.get(key) if entry is None else entry

    def _with_room(self) -> dict[Tail, int | Successors]:
        if len(self._recent) >= self._most:
            self._older, self._recent = self._recent, {}
        return self._recent


def _likely(ids: Sequence[int], logits: Sequence[float]) -> Successors:
    least = logits[0] - _UNLIKELY
    weights = [math.exp(logit - logits[0]) for logit in logits if logit >= least]
    total = 0.0
    for weight in weights:  # one after the other: `sum` is more exact from Python 3.12 on
        total += weight
    return tuple((token, weight / total) for token, weight in zip(ids, weights, strict=False))
