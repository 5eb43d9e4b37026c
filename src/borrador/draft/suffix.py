"""Drafts copied from what was written before: the most frequent continuation of the longest match.

Source: SuffixDecoding (Oliaro et al., arXiv 2411.04975); a suffix automaton in place of its tree, as in SAM Decoding
(Hu et al., arXiv 2411.10666).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from borrador import _native
from borrador.draft.history import History
from borrador.draft.protocol import GoOn, Price, StatelessSession, always, believed
from borrador.sampling.shaping import Shaper
from borrador.types import Draft, Int32Array

LONGEST_MATCH: int = _native.longest_match
SHORTEST_MATCH = 1
MOST_TOKENS = 1 << 18  # of a request; what comes behind them is matched, and not learnt
_LEAST_CONFIDENCE = 0.2  # where a path ends for want of evidence
_LEAST_PATH = 0.05  # product of the confidences along it


class SuffixDrafter:
    """Copies from the request's own tokens, and from earlier answers where a history is given.

    Args:
        history: of earlier answers; closed with the drafter. None shares nothing between requests. Requests of a
            namespace with a name neither see it nor add to it.
        tree: propose several continuations of a match that went on differently; False proposes the likeliest alone.
    """

    name = "suffix"

    def __init__(self, history: History | None = None, *, tree: bool = True) -> None:
        self._history = history
        self._tree = tree

    def use(self, history: History) -> None:
        """From the next request on, propose from these answers too, and add to them. Closed with the drafter."""
        self._history = history

    def open(self, _shaper: Shaper, /) -> SuffixSession:
        return self.open_in("", _shaper)

    def open_in(self, namespace: str, _shaper: Shaper, /) -> SuffixSession:
        return SuffixSession(None if namespace else self._history, tree=self._tree)

    def price(self) -> Price:
        return Price()

    def close(self) -> None:
        if self._history is not None:
            self._history.close()


class SuffixSession(StatelessSession):
    """One request's drafting. A token takes amortised constant time, however long the context is.

    Args:
        history: whose answers are proposed from where they match the context further than its own tokens do. It
            remembers this request's answer when the session is closed.
        tree: as for `SuffixDrafter`.
        capacity: the most tokens of the context that are learnt.
    """

    def __init__(self, history: History | None = None, *, tree: bool = True, capacity: int = MOST_TOKENS) -> None:
        self._history = history
        self._tree = tree
        self._own = _native.SuffixAutomaton(capacity)
        self._earlier = history.automaton if history is not None else None
        self._earlier_match = _native.SuffixMatch()
        self._read_tokens = 0
        self._answer: list[int] = []

    def propose(self, context: Sequence[int], budget: int, _go_on: GoOn = always) -> Draft:
        """What most often followed the longest suffix of the context that stood somewhere before.

        Confidence is the share of a continuation among all that followed the match. A match of m tokens that was
        followed f times speaks with the weight f / (f + 1.2 / m), the next shorter one shares the rest in the same way,
        and so on: long matches decide, short ones where long ones were seldom seen or went on differently. A path ends
        where its evidence does.
        """
        self._read(context)
        matches = self._matches(())
        return next(
            (draft for match in matches if (draft := self._copy(*match, budget)).tokens), Draft(drafter="suffix")
        )

    def hint(self, context: Sequence[int], path: Sequence[int], count: int, /) -> tuple[int, ...]:
        self._read(context)
        hints = (_propose(*match, count, chain=True)[0] for match in self._matches(path))
        return next((tuple(tokens) for tokens in hints if tokens), ())

    def observe(self, committed: Sequence[int]) -> None:
        if self._history is not None:
            self._answer += committed

    def close(self) -> None:
        if self._history is not None:
            self._history.remember(self._answer)
            self._answer = []

    def _read(self, context: Sequence[int]) -> None:
        new = context[self._read_tokens :]
        if not new:
            return
        self._read_tokens = len(context)
        self._own.add(_array(new))
        if self._earlier is not None:
            self._earlier_match = self._earlier.follow(self._earlier_match, _array(new[-LONGEST_MATCH:]))

    def _matches(self, path: Sequence[int]) -> list[tuple[_native.SuffixAutomaton, _native.SuffixMatch]]:
        """Where context and path stood before, the longest match first; of equal ones the request's own."""
        places = [(self._own, self._own.match())]
        if self._earlier is not None:
            places.append((self._earlier, self._earlier_match))
        if path:
            tokens = _array(path)
            places = [(automaton, automaton.follow(match, tokens)) for automaton, match in places]
        return sorted(places, key=lambda place: -place[1].length)

    def _copy(self, automaton: _native.SuffixAutomaton, match: _native.SuffixMatch, budget: int) -> Draft:
        tokens, parents, confidence = _propose(automaton, match, budget, chain=not self._tree)
        is_chain = parents == list(range(-1, len(tokens) - 1))
        return Draft(
            tokens=tuple(tokens),
            parents=None if is_chain else tuple(parents),
            drafter="suffix",
            confidence=tuple(map(believed, confidence)),
        )


def _propose(
    automaton: _native.SuffixAutomaton, match: _native.SuffixMatch, budget: int, *, chain: bool
) -> tuple[list[int], list[int], list[float]]:
    return automaton.propose(
        match,
        budget=max(budget, 0),
        least=_LEAST_CONFIDENCE,
        least_path=_LEAST_PATH,
        chain=chain,
        shortest=SHORTEST_MATCH,
    )


def _array(tokens: Sequence[int]) -> Int32Array:
    return np.array(tokens, np.int32)
