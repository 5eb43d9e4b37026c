"""What passes and drafts cost, corrected by what they really take; `borrador.engine.measuring` measures it at load."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from operator import le
from typing import Any, NamedTuple

from borrador.draft.protocol import Price
from borrador.engine.candidates import ALONE, Load, PassCost

BASE_CONTEXT = 64  # the first token of a context costs more than the next ones
_FOLLOW_LEVEL = 0.1  # share of a new observation that all sizes take over
_FOLLOW_SHAPE = 0.03  # and the size that it is of besides
_FOLLOW_AGE, _OLD = 0.002, 30  # and more of it for every pass since it was last seen, up to so many
_FRESH = 20  # passes; a size that was seen more lately is known
_LARGEST_STEP = 0.1
_LARGEST_SURPRISE = 0.5  # a pass that was stalled by other programs counts as at most half as long again
_LEAST_S, _ETERNITY_S = 1e-9, 1e6
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

    T is a level, which every pass moves, times a shape, which only moves slowly: programs beside this one slow passes
    of all sizes down, and what counts for a decision is how sizes compare. Sizes that are seen shift in the shape
    against each other, never together against those that are not: however long it goes on, noise does not move these.

    Args:
        seconds: measured seconds by rows, at least for 1 row, behind a short context of `BASE_CONTEXT` tokens.
        context: what each further token of it adds.
    """

    def __init__(self, seconds: Mapping[int, float], context: ContextCosts = NO_CONTEXT) -> None:
        self._rows = sorted(seconds)
        self._shape = [max(seconds[rows], _LEAST_S) for rows in self._rows]
        self._level = 1.0
        self._context = context
        self._passes = 0
        self._seen = [-_FRESH - 1] * len(self._rows)  # the last pass of each size
        self._smooth()

    def __call__(self, rows: float) -> float:
        return self._at(rows)

    def behind(self, load: Load) -> PassCost:
        """T(m) for passes of this load's requests, with their contexts."""
        fixed, each = self._added(load)
        level, table, smooth = self._level, self._table, self._smoothed

        def pass_s(rows: float) -> float:
            # Asked for many sizes in every round, at a time when nothing is in the processor's caches.
            known = table.get(rows)
            if known is None:
                known = table[rows] = self._between(smooth, rows)
            return level * known + fixed + each * rows

        return pass_s

    def observe(self, rows: int, seconds: float, load: Load = ALONE) -> None:
        """Follow a pass that really ran: the machine's load, and where weights lie, change what passes cost.

        A size that was not seen for long shifts more when it is seen again.
        """
        fixed, each = self._added(load)
        part = self._between(self._shape if rows <= self._rows[-1] else self._smoothed, rows)
        own = self._level * part
        expected = own + fixed + each * rows
        surprise = _surprise(seconds, expected)
        if rows > _BEYOND * self._rows[-1]:
            self._rows.append(rows)
            self._shape.append(part)
            self._seen.append(self._passes - _FRESH - 1)
        nearest = self._nearest(rows)
        age = self._passes - max(self._seen[index] for index in nearest)
        self._passes += 1
        for index in nearest:
            self._seen[index] = self._passes
        if age <= _FRESH:
            self._level *= math.exp(_FOLLOW_LEVEL * surprise)
        self._shift(nearest, _limited((_FOLLOW_SHAPE + _FOLLOW_AGE * min(age, _OLD)) * surprise))
        factor = 1.0 + _FOLLOW_LEVEL * surprise * (1.0 - own / expected)  # by the part that the context adds
        self._context = ContextCosts(factor * self._context.reading_s, factor * self._context.row_s)

    def scale(self, seconds: float) -> None:
        """Let a pass over one row behind a short context take so many seconds, and all others accordingly."""
        factor = seconds / self._at(1)
        self._level *= factor
        self._context = ContextCosts(*(factor * known for known in self._context))

    def as_json(self) -> dict[str, Any]:
        seconds = [self._level * part for part in self._shape]
        return {"rows": self._rows, "seconds": seconds, "context": list(self._context)}

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
        return self._level * self._between(self._smoothed, rows)

    def _between(self, parts: Sequence[float], rows: float) -> float:
        """On the straight line through the sizes around `rows`."""
        if len(self._rows) == 1:
            return parts[0] * rows / self._rows[0]
        high, share = self._place(rows)
        low = parts[high - 1]
        return low + (parts[high] - low) * share

    def _shift(self, nearest: Mapping[int, float], step: float) -> None:
        """Move these sizes against others seen lately, which keep their seconds; the rest keeps its part of both."""
        oldest = self._passes - _FRESH
        fresh = [index for index, seen in enumerate(self._seen) if seen >= oldest]
        common = step / len(fresh)
        self._level *= math.exp(common)
        if len(fresh) > 1:
            for index in fresh:
                self._shape[index] *= math.exp(step * nearest.get(index, 0.0) - common)
            self._smooth()

    def _smooth(self) -> None:
        self._smoothed = rising(self._shape)
        self._table: dict[float, float] = {}  # parts by rows, as they are asked for

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
    if all(map(le, values, values[1:])):
        return [*values]
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


def _limited(step: float) -> float:
    return min(max(step, -_LARGEST_STEP), _LARGEST_STEP)
