"""Drafts copied from the context itself: what followed the last time its tail was seen (prompt lookup decoding)."""

from __future__ import annotations

from collections.abc import Sequence

from borrador.draft.protocol import GoOn, Price, StatelessSession, always
from borrador.sampling.shaping import Shaper
from borrador.types import Draft

# One token alone matches nearly everywhere and says little. Longer matches than six are found by their last six tokens.
SHORTEST_MATCH = 2
LONGEST_MATCH = 6
_LONGEST_COUNTED = 32
_DOUBT = 1.2  # of a copy after a match of one token; a match of m tokens leaves 1/m of it


class LookupDrafter:
    """Copies from the request's own tokens; nothing is shared between requests."""

    name = "lookup"

    def open(self, _shaper: Shaper, /) -> LookupSession:
        return LookupSession()

    def price(self) -> Price:
        return Price()

    def close(self) -> None:
        pass


class LookupSession(StatelessSession):
    """An index from every n-gram of the context (n from shortest to longest) to what followed its last occurrence.

    Each token of the context is indexed once, so that a token costs the same however long the context is.
    """

    def __init__(self, shortest: int = SHORTEST_MATCH, longest: int = LONGEST_MATCH) -> None:
        self._follower: dict[tuple[int, ...], int] = {}
        self._sizes = range(longest, shortest - 1, -1)
        self._indexed = 0

    def propose(self, context: Sequence[int], budget: int, _go_on: GoOn = always) -> Draft:
        """Copy what followed the most recent earlier occurrence of the longest matching tail.

        A copy that reaches the context's end goes on with itself, so that repetition is drafted in full. Confidence
        grows with the match, which grows by every copied token.
        """
        self._index(context)
        source = self._match(context)
        if source is None or budget < 1:
            return Draft(drafter="lookup")
        period = len(context) - source
        copied = list(context[source : source + budget])
        while len(copied) < budget:
            copied.append(copied[-period])
        matched = self._matched(context, source)
        confidence = tuple(1.0 - _DOUBT / (matched + index) for index in range(budget))
        return Draft(tokens=tuple(copied), drafter="lookup", confidence=confidence)

    def hint(self, context: Sequence[int], path: Sequence[int], count: int, /) -> tuple[int, ...]:
        """As `Hinting.hint`: what followed the longest tail of context and path that stood in the context before."""
        self._index(context)
        length = len(context) + len(path)
        tail = [*context[max(0, len(context) - self._sizes[0]) :], *path]
        source = self._match(tail)
        if source is None:
            return ()
        known = [*context[source : source + count], *path]
        while len(known) < count:
            known.append(known[-(length - source)])
        return tuple(known[:count])

    def close(self) -> None:
        self._follower.clear()

    def _index(self, context: Sequence[int]) -> None:
        for end in range(self._indexed, len(context)):
            for size in self._sizes:
                if size <= end:
                    self._follower[tuple(context[end - size : end])] = end
        self._indexed = len(context)

    def _match(self, context: Sequence[int]) -> int | None:
        for size in self._sizes:
            if size <= len(context):
                source = self._follower.get(tuple(context[-size:]))
                if source is not None:
                    return source
        return None

    def _matched(self, context: Sequence[int], source: int) -> int:
        """How many tokens before `source` are those at the context's end."""
        length = self._sizes[-1]
        most = min(source, _LONGEST_COUNTED)
        while length < most and context[source - 1 - length] == context[-1 - length]:
            length += 1
        return length
