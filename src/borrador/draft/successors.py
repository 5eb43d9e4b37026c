"""What followed the last tokens of a text, or might have: tails of tokens and their likely successors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Tail = tuple[int, ...]
Successors = tuple[tuple[int, float], ...]

LONGEST_TAIL = 3
MOST_TAILS = 1 << 16

# By the tail's length, how much a tail is believed; the rest is left to the shorter ones. Fitted to answers of three
# models to prompts of seven kinds, so that the beliefs are close to how often they come true.
_SEEN = (0.0, 0.5, 0.6, 0.5)
_COPIED = (0.0, 0.2, 0.4, 0.5)


class SuccessorTable:
    """For every tail of one to three tokens what a model last held likely to follow it, or else what last followed it.

    The last `most` tails that were learnt or copied are known; of those before them, as many more at most.

    Args:
        most: at least 1.
    """

    def __init__(self, most: int = MOST_TAILS) -> None:
        self._most = most
        self._recent: dict[Tail, int | Successors] = {}
        self._older: dict[Tail, int | Successors] = {}

    def __len__(self) -> int:
        """How many tails are held, those twice that were learnt again."""
        return len(self._recent) + len(self._older)

    def learn(self, tail: Tail, successors: Successors) -> None:
        """Learn what a model holds likely behind these tokens, in place of what was known.

        Args:
            tail: the last tokens, up to three.
            successors: tokens with their probabilities.
        """
        known = self._with_room()
        for start in range(len(tail)):
            known[tail[start:]] = successors

    def copy(self, tail: Tail, token: int) -> None:
        """Learn that `token` followed; what a model held likely behind the same tokens is not replaced."""
        known = self._with_room()
        for start in range(len(tail)):
            key = tail[start:]
            if not isinstance(self._get(key), tuple):
                known[key] = token

    def following(self, tail: Tail) -> Mapping[int, float]:
        """Tokens that may follow, with the probability of each, below 1 in sum.

        A longer tail is believed first, and shorter ones share what it leaves (interpolation as in n-gram models).
        """
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

    def clear(self) -> None:
        """Forget everything."""
        self._recent.clear()
        self._older.clear()

    def _get(self, key: Tail) -> int | Successors | None:
        entry = self._recent.get(key)
        return self._older.get(key) if entry is None else entry

    def _with_room(self) -> dict[Tail, int | Successors]:
        """Where to write: a full half of the table becomes the older one, and what that held is forgotten."""
        if len(self._recent) >= self._most:
            self._older, self._recent = self._recent, {}
        return self._recent


def last_of(tokens: Sequence[int]) -> Tail:
    """The tail of a text that successors are known by."""
    return tuple(tokens[-LONGEST_TAIL:])
