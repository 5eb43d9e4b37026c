"""Pure statistics of paired measurements."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from borrador.types import Float64Array

Statistic = Callable[[Float64Array], Float64Array]

_RESAMPLES = 10_000
_LEVEL = 0.95
_SEED = 20_260_101
_AT_ONCE = 1 << 22  # numbers


class Interval(NamedTuple):
    """Bounds between which a value lies with 95 % confidence."""

    low: float
    high: float


def median_of_known(values: Iterable[float | None]) -> float | None:
    """The median of those that are known; None where none is."""
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def median_interval(values: Sequence[float], resamples: int = _RESAMPLES) -> Interval | None:
    """Of the median, as `interval_of`.

    Args:
        values: independent of each other.
        resamples: how often they are drawn.
    """
    return interval_of(np.asarray(values, np.float64), lambda drawn: np.median(drawn, axis=1), resamples)


def interval_of(measured: Float64Array, statistic: Statistic, resamples: int = _RESAMPLES) -> Interval | None:
    """Of any statistic, by the percentile bootstrap: rows are drawn with replacement, always by the same seed.

    Source: Efron, "Bootstrap Methods: Another Look at the Jackknife" (Annals of Statistics 7, 1979).

    Args:
        measured: rows that are independent of each other, each a number or several that belong together.
        statistic: from (samples, rows, ...) to (samples,): the value of each sample of as many rows.
        resamples: how often rows are drawn.

    Returns:
        None for fewer than two rows, which say nothing of their spread.
    """
    if len(measured) < 2:
        return None
    random = np.random.default_rng(_SEED)
    at_once = max(_AT_ONCE // measured.size, 1)
    sizes = [min(at_once, resamples - start) for start in range(0, resamples, at_once)]
    drawn = (measured[random.integers(len(measured), size=(size, len(measured)))] for size in sizes)
    values = np.concatenate([statistic(sample) for sample in drawn])
    low, high = np.quantile(values, ((1 - _LEVEL) / 2, (1 + _LEVEL) / 2))
    return Interval(float(low), float(high))
