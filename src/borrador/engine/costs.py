"""What passes and drafts cost, corrected by what they really take; `borrador.engine.measuring` measures it at load."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from borrador.draft.protocol import Price
from borrador.engine.candidates import ALONE, Load, PassCost

BASE_CONTEXT = 64  # the first token of a context costs more than the next ones
_FOLLOW_LEVEL = 0.1  # share of a new observation that a size takes over
_FOLLOW_AGE, _OLD = 0.01, 30  # and more of it for every pass since it was last seen, up to so many
_FRESH = 20  # passes; a size that was seen more lately follows no other
_LARGEST_STEP = 0.1
_LARGEST_SURPRISE = 0.5  # a pass that was stalled by other programs counts as at most half as long again
_ETERNITY_S = 1e6
_STALLED = 5.0  # a proposal counts for at most so many times the limit
_BEYOND = 1.5  # a pass with so many times the most rows known is a size of its own


class ContextCosts(NamedTuple):
    """What each token of a context adds to a pass, in seconds.

    Attributes:
        reading_s: once for its request.
        row_s: for each row of its request.
    """

    reading_s: float = 0.0
    row_s: float = 0.0


NO_CONTEXT = ContextCosts()


class RowCosts:
    """T(m), the seconds of a pass over m rows; between and beyond the measured sizes by straight lines.

    More rows are never cheaper: what looks so is noise, and is evened out by isotonic regression.

    Args:
        seconds: measured seconds by rows, at least for 1 row, behind a short context of `BASE_CONTEXT` tokens.
        context: what each further token of it adds.
    """

    def __init__(self, seconds: Mapping[int, float], context: ContextCosts = NO_CONTEXT) -> None:
        self._rows = sorted(seconds)
        self._seconds = rising([seconds[rows] for rows in self._rows])
        self._context = context
        self._ages = [_FRESH + 1] * len(self._rows)  # passes since each size was last seen
        self._table: dict[float, float] = {}  # by rows, as they are asked for

    def __call__(self, rows: float) -> float:
        return self._at(rows)

    def behind(self, load: Load) -> PassCost:
        """T(m) for passes of this load's requests, with their contexts."""
        fixed, each = self._added(load)
        table, at = self._table, self._at

        def pass_s(rows: float) -> float:
            # Asked for many sizes in every round, at a time when nothing is in the processor's caches.
            known = table.get(rows)
            if known is None:
                known = table[rows] = at(rows)
            return known + fixed + each * rows

        return pass_s

    def observe(self, rows: int, seconds: float, load: Load = ALONE) -> None:
        """Follow a pass that really ran: the machine's load, and where weights lie, change what passes cost.

        A size that was not seen for long follows those that are seen, and moves more when it is seen again.
        """
        fixed, each = self._added(load)
        expected = self._at(rows) + fixed + each * rows
        surprise = _surprise(seconds, expected)
        if rows > _BEYOND * self._rows[-1]:
            self._seconds.append(self._at(rows))
            self._rows.append(rows)
            self._ages.append(_FRESH + 1)
        nearest = self._nearest(rows)
        is_fresh = min(self._ages[index] for index in nearest) <= _FRESH
        for index, age in enumerate(self._ages):
            if index in nearest:
                gain = nearest[index] * (_FOLLOW_LEVEL + _FOLLOW_AGE * min(age, _OLD))
                self._ages[index] = 0
            else:
                gain = _FOLLOW_LEVEL if is_fresh and age > _FRESH else 0.0
                self._ages[index] = age + 1
            self._seconds[index] *= 1.0 + min(max(gain * surprise, -_LARGEST_STEP), _LARGEST_STEP)
        self._seconds = rising(self._seconds)
        self._table = {}
        added = 1.0 - self._at(rows) / expected if expected else 0.0  # the part that the context adds
        factor = 1.0 + _FOLLOW_LEVEL * surprise * min(max(added, 0.0), 1.0)
        self._context = ContextCosts(*(factor * known for known in self._context))

    def scale(self, seconds: float) -> None:
        """Let a pass over one row behind a short context take so many seconds, and all others accordingly."""
        factor = seconds / self._at(1)
        self._seconds = [factor * known for known in self._seconds]
        self._context = ContextCosts(*(factor * known for known in self._context))
        self._table = {}

    def as_json(self) -> dict[str, Any]:
        return {"rows": self._rows, "seconds": self._seconds, "context": list(self._context)}

    @classmethod
    def from_json(cls, stored: Any) -> RowCosts:
        """What `as_json` gave. Raises ValueError, KeyError or TypeError for anything else."""
        rows, seconds, (reading_s, row_s) = stored["rows"], stored["seconds"], stored["context"]
        numbers = [*seconds, reading_s, row_s]
        if not all(isinstance(size, int) and size > 0 for size in rows) or sorted(set(rows)) != rows or rows[0] != 1:
            raise ValueError("sizes must rise from 1")
        if not all(isinstance(number, float) and 0.0 <= number < _ETERNITY_S for number in numbers) or not seconds[0]:
            raise ValueError("costs must be seconds")
        return cls(dict(zip(rows, seconds, strict=True)), ContextCosts(reading_s, row_s))

    def _at(self, rows: float) -> float:
        if len(self._rows) == 1:
            return self._seconds[0] * rows / self._rows[0]
        high, share = self._place(rows)
        low = self._seconds[high - 1]
        return low + (self._seconds[high] - low) * share

    def _added(self, load: Load) -> tuple[float, float]:
        """Seconds that this load's contexts add to a pass, and to each of its rows."""
        longer = max(load.context - BASE_CONTEXT, 0.0)
        return load.requests * longer * self._context.reading_s, longer * self._context.row_s

    def _nearest(self, rows: int) -> dict[int, float]:
        """Indices of the sizes next to `rows`, with how much each is meant."""
        if len(self._rows) == 1:
            return {0: 1.0}
        high, share = self._place(rows)
        share = min(share, 1.0)
        return {index: meant for index, meant in ((high - 1, 1.0 - share), (high, share)) if meant > 0.0}

    def _place(self, rows: float) -> tuple[int, float]:
        """Index of the measured size at or above `rows`, and how far on the way to it `rows` lies."""
        high = min(max(bisect_left(self._rows, rows), 1), len(self._rows) - 1)
        return high, (rows - self._rows[high - 1]) / (self._rows[high] - self._rows[high - 1])


def behind(pass_s: PassCost, load: Load) -> PassCost:
    """T(m) for a pass with this load, where `pass_s` knows what contexts cost."""
    return pass_s.behind(load) if isinstance(pass_s, RowCosts) else pass_s


class DraftCosts:
    """What a drafter's work costs: its measured price, corrected by what it really took.

    Attributes:
        token_s: seconds per proposed token.
        context_token_s: seconds per token of the context that must be read first.
        call_s: seconds that a proposal takes, however many tokens it has; learnt of drafters whose tokens cost nothing.
    """

    def __init__(self, price: Price) -> None:
        self.token_s, self.context_token_s = price
        self.call_s = 0.0

    def observe_token(self, seconds: float) -> None:
        self.token_s *= 1.0 + _FOLLOW_LEVEL * _surprise(seconds, self.token_s)

    def observe_reading(self, tokens: int, seconds: float) -> None:
        self.context_token_s *= 1.0 + _FOLLOW_LEVEL * _surprise(seconds / tokens, self.context_token_s)

    def observe_call(self, seconds: float, tokens: int, limit_s: float) -> None:
        """Follow a proposal of a drafter whose tokens are said to cost nothing. If proposals take longer than
        `limit_s`, a stalled one among them aside, its tokens get a price.
        """
        self.call_s += _FOLLOW_LEVEL * (min(seconds, _STALLED * limit_s) - self.call_s)
        if self.call_s > limit_s:
            self.token_s = self.call_s / max(tokens, 1)


def rising(values: Sequence[float]) -> list[float]:
    """The non-decreasing sequence that lies closest to `values` in least squares (pool adjacent violators)."""
    pools: list[tuple[float, int]] = []
    for value in values:
        pool = (value, 1)
        while pools and pools[-1][0] > pool[0]:
            mean, count = pools.pop()
            pool = ((mean * count + pool[0] * pool[1]) / (count + pool[1]), count + pool[1])
        pools.append(pool)
    return [mean for mean, count in pools for _ in range(count)]


def _surprise(seconds: float, expected: float) -> float:
    if not expected:
        return 0.0
    return min(max(seconds / expected - 1.0, -_LARGEST_SURPRISE), _LARGEST_SURPRISE)
