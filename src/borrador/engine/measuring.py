"""Times passes of a target, when it is loaded."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

from borrador.engine.costs import BASE_CONTEXT, NO_CONTEXT, ContextCosts, RowCosts
from borrador.models.target import Rows, Target

MEASURED_ROWS = (1, 2, 4, 6, 8, 12, 16)
_MEASURED_CONTEXT = 1024
_LEVEL_WARM_UP_S = 0.05
_FEWEST_S = 0.3  # a sweep that takes longer is not repeated


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
