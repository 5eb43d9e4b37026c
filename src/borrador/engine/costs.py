"""What a pass over m rows costs: measured at load, corrected while running."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Mapping

from borrador.models.target import Rows, Target

MEASURED_ROWS = (1, 2, 4, 6, 8, 12, 16)
_FOLLOW = 0.1  # share of a new observation


class RowCosts:
    """T(m), the seconds of a pass over m rows; between and beyond the measured sizes by straight lines.

    Args:
        seconds: measured seconds by rows, at least for 1 row.
    """

    def __init__(self, seconds: Mapping[int, float]) -> None:
        self._rows = sorted(seconds)
        self._seconds = [seconds[rows] for rows in self._rows]
        for index in range(1, len(self._seconds)):  # more rows are never cheaper: what looks so is noise
            self._seconds[index] = max(self._seconds[index - 1 : index + 1])
        self._level = 1.0

    def __call__(self, rows: int) -> float:
        return self._level * self._shape(rows)

    def observe(self, rows: int, seconds: float) -> None:
        """Follow a pass that really ran: the machine's load and the context's length change what passes cost."""
        expected = self(rows)
        ratio = min(max(seconds / expected, 0.5), 2.0) if expected else 1.0
        self._level *= 1.0 + _FOLLOW * (ratio - 1.0)

    def _shape(self, rows: int) -> float:
        high = min(max(bisect_left(self._rows, rows), 1), len(self._rows) - 1)
        if high == 0:
            return self._seconds[0] * rows
        x0, x1 = self._rows[high - 1], self._rows[high]
        y0, y1 = self._seconds[high - 1], self._seconds[high]
        return y0 + (y1 - y0) * (rows - x0) / (x1 - x0)


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
