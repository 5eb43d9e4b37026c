"""Pure statistics of paired measurements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

_RESAMPLES = 10_000
_LEVEL = 0.95
_SEED = 20_260_101
_AT_ONCE = 1 << 22  # numbers


class Interval(NamedTuple):
    """Bounds between which a value lies with 95 % confidence."""

    low: float
    high: float


def median_interval(values: Sequence[float], resamples: int = _RESAMPLES) -> Interval | None:
    """Of the median, by the percentile bootstrap: values are drawn with replacement, always by the same seed.

    Source: Efron, "Bootstrap Methods: Another Look at the Jackknife" (Annals of Statistics 7, 1979).

    Args:
        values: independent of each other.
        resamples: how often they are drawn.

    Returns:
        None for fewer than two values, which say nothing of their spread.
    """
    if len(values) < 2:
        return None
    random, known = np.random.default_rng(_SEED), np.asarray(values, np.float64)
    at_once = max(_AT_ONCE // len(known), 1)
    sizes = [min(at_once, resamples - start) for start in range(0, resamples, at_once)]
    drawn = (known[random.integers(len(known), size=(size, len(known)))] for size in sizes)
    medians = np.concatenate([np.median(sample, axis=1) for sample in drawn])
    low, high = np.quantile(medians, ((1 - _LEVEL) / 2, (1 + _LEVEL) / 2))
    return Interval(float(low), float(high))
