"""What passes and drafts cost: measured at load, corrected while running."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Mapping, Sequence

from borrador.draft.protocol import Price
from borrador.models.target import Rows, Target

MEASURED_ROWS = (1, 2, 4, 6, 8, 12, 16)
_FOLLOW_LEVEL = 0.1  # share of a new observation that moves all sizes
_FOLLOW_SHAPE = 0.05  # share of it that moves the sizes next to the observed one
_LARGEST_SURPRISE = 0.5  # a pass that was stalled by other programs counts as at most half as long again
_LARGEST_MISFIT = 0.1  # larger surprises come from the machine and say nothing of one size against another


class RowCosts:
    """T(m), the seconds of a pass over m rows; between and beyond the measured sizes by straight lines.

    More rows are never cheaper: what looks so is noise, and is evened out by isotonic regression.

    Args:
        seconds: measured seconds by rows, at least for 1 row.
    """

    def __init__(self, seconds: Mapping[int, float]) -> None:
        self._rows = sorted(seconds)
        self._seconds = rising([seconds[rows] for rows in self._rows])

    def __call__(self, rows: float) -> float:
        if len(self._rows) == 1:
            return self._seconds[0] * rows / self._rows[0]
        high, share = self._place(rows)
        low = self._seconds[high - 1]
        return low + (self._seconds[high] - low) * share

    def observe(self, rows: int, seconds: float) -> None:
        """Follow a pass that really ran: the machine's load and the context's length change what passes cost."""
        surprise = _surprise(seconds, self(rows))
        misfit = min(max(surprise, -_LARGEST_MISFIT), _LARGEST_MISFIT)
        level = 1.0 + _FOLLOW_LEVEL * surprise
        self._seconds = [level * known for known in self._seconds]
        if len(self._rows) > 1:
            high, share = self._place(rows)
            share = min(share, 1.0)
            self._seconds[high - 1] *= 1.0 + _FOLLOW_SHAPE * misfit * (1.0 - share)
            self._seconds[high] *= 1.0 + _FOLLOW_SHAPE * misfit * share
            self._seconds = rising(self._seconds)

    def _place(self, rows: float) -> tuple[int, float]:
        """Index of the measured size at or above `rows`, and how far on the way to it `rows` lies."""
        high = min(max(bisect_left(self._rows, rows), 1), len(self._rows) - 1)
        return high, (rows - self._rows[high - 1]) / (self._rows[high] - self._rows[high - 1])


class DraftCosts:
    """What a drafter's work costs: its measured price, corrected by what it really took.

    Attributes:
        token_s: seconds per proposed token.
        context_token_s: seconds per token of the context that must be read first.
    """

    def __init__(self, price: Price) -> None:
        self.token_s, self.context_token_s = price

    def observe_token(self, seconds: float) -> None:
        self.token_s *= 1.0 + _FOLLOW_LEVEL * _surprise(seconds, self.token_s)

    def observe_reading(self, tokens: int, seconds: float) -> None:
        self.context_token_s *= 1.0 + _FOLLOW_LEVEL * _surprise(seconds / tokens, self.context_token_s)


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


def measure_row_costs(target: Target, budget_s: float = 0.35) -> RowCosts:
    """Time passes of several sizes on an empty sequence, which is left empty.

    Sizes are interleaved, so that a change of the machine's load meets all of them, and the fastest pass of each is
    taken: other programs can only add time. Two sweeps are made, more as long as `budget_s` lasts, fewer where one
    sweep alone exceeds it.
    """
    sizes = [rows for rows in MEASURED_ROWS if rows <= target.context_length]
    samples: dict[int, list[float]] = {rows: [] for rows in sizes}
    _time_pass(target, sizes[0])
    start = time.perf_counter()
    sweep_s = 0.0
    while len(samples[sizes[0]]) < 2 or time.perf_counter() - start + sweep_s < budget_s:
        sweep_start = time.perf_counter()
        for rows in sizes:
            samples[rows].append(_time_pass(target, rows))
        sweep_s = time.perf_counter() - sweep_start
        if sweep_s > budget_s:
            break
    return RowCosts({rows: min(seconds) for rows, seconds in samples.items()})


def _time_pass(target: Target, rows: int) -> float:
    batch = Rows.chain([0] * rows)
    start = time.perf_counter()
    target.forward(batch)
    seconds = time.perf_counter() - start
    target.rewind(target.length)
    return seconds


def _surprise(seconds: float, expected: float) -> float:
    if not expected:
        return 0.0
    return min(max(seconds / expected - 1.0, -_LARGEST_SURPRISE), _LARGEST_SURPRISE)
