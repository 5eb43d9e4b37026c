"""What passes and drafts cost: measured at load, corrected while running."""

from __future__ import annotations

import math
import time
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from borrador.draft.protocol import Price
from borrador.engine.candidates import ALONE, Load, PassCost
from borrador.models.target import Rows, Target

MEASURED_ROWS = (1, 2, 4, 6, 8, 12, 16)
BASE_CONTEXT = 64  # the first token of a context costs more than the next ones
_MEASURED_CONTEXT = 1024
_FOLLOW_LEVEL = 0.1  # share of a new observation that a size takes over
_FOLLOW_AGE, _OLD = 0.01, 30  # and more of it for every pass since it was last seen, up to so many
_FRESH = 20  # passes; a size that was seen more lately follows no other
_LARGEST_STEP = 0.1
_LARGEST_SURPRISE = 0.5  # a pass that was stalled by other programs counts as at most half as long again
_LEVEL_WARM_UP_S = 0.05
_FEWEST_S = 0.3  # a sweep that takes longer is not repeated
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


def measure_row_costs(target: Target, budget_s: float = 0.25) -> RowCosts:
    """Time passes of several sizes on an empty sequence, which is left empty: behind a short context, and two of them
    behind a longer one.

    Sizes are interleaved, so that a change of the machine's load meets all of them, and the fastest pass of each is
    taken: other programs can only add time. Two sweeps are made, more as long as `budget_s` lasts, fewer where one
    sweep alone exceeds it.
    """
    _warm_up(target, budget_s / 3)
    few, many = 1, min(8, target.context_length)
    short = min(BASE_CONTEXT, max(target.context_length - max(MEASURED_ROWS), 0))
    long = min(_MEASURED_CONTEXT, target.context_length - many)
    sizes = [(rows, short) for rows in MEASURED_ROWS if rows <= target.context_length]
    if long > short:
        sizes += [(few, long), (many, long)]
    fastest = _fastest_passes(target, sizes, budget_s)
    context = NO_CONTEXT
    if long > short and many > few:
        added = [max(fastest[rows, long] - fastest[rows, short], 0.0) / (long - short) for rows in (few, many)]
        row_s = max(added[1] - added[0], 0.0) / (many - few)
        context = ContextCosts(max(added[0] - few * row_s, 0.0), row_s)
    return RowCosts({rows: seconds for (rows, length), seconds in fastest.items() if length == short}, context)


def _warm_up(target: Target, seconds: float) -> None:
    """Passes over one row, until what they read lies where it will lie while text is written."""
    start = time.perf_counter()
    while time.perf_counter() - start < seconds:
        _time_pass(target, 1, 0)


def measure_level(target: Target) -> float:
    """Seconds of a pass over one row behind a short context; the sequence must be empty, and is left so."""
    _warm_up(target, _LEVEL_WARM_UP_S)
    size = (1, min(BASE_CONTEXT, target.context_length - 1))
    return _fastest_passes(target, [size], budget_s=0.0)[size]


def _fastest_passes(target: Target, sizes: Sequence[tuple[int, int]], budget_s: float) -> dict[tuple[int, int], float]:
    """The fastest of at least two passes of each size: rows, and tokens of the context before them."""
    fastest = dict.fromkeys(sizes, math.inf)
    start = time.perf_counter()
    sweep_s, sweeps = 0.0, 0
    while sweeps < 2 or time.perf_counter() - start + sweep_s < budget_s:
        sweep_start = time.perf_counter()
        for size in sizes:
            fastest[size] = min(fastest[size], _time_pass(target, *size))
        sweep_s, sweeps = time.perf_counter() - sweep_start, sweeps + 1
        if sweep_s > max(budget_s, _FEWEST_S):
            break
    return fastest


def _time_pass(target: Target, rows: int, context: int) -> float:
    batch = Rows.chain([0] * rows)
    try:
        target.assume(context)
        start = time.perf_counter()
        target.best(batch, 1)
        return time.perf_counter() - start
    finally:
        target.rewind(0)


def _surprise(seconds: float, expected: float) -> float:
    if not expected:
        return 0.0
    return min(max(seconds / expected - 1.0, -_LARGEST_SURPRISE), _LARGEST_SURPRISE)
