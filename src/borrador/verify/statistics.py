"""Do draws follow a law? Chi-square tests with exact tails, and Holm's correction for many of them.

Written out here because nothing else at run time needs a statistics library.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

Outcome = TypeVar("Outcome", bound=Hashable)

_LEAST_EXPECTED = 5.0  # draws in a cell; below it the chi-square distribution is a poor approximation
_TINY = 1e-300
_PRECISION = 1e-15


@dataclass(frozen=True, slots=True)
class Fit(Generic[Outcome]):
    """How well draws fit a law.

    Attributes:
        draws: how many there were.
        statistic: chi-square; infinite where something was drawn that the law excludes.
        freedom: degrees of freedom, cells minus one; 0 where the law leaves nothing to compare.
        p_value: probability of a fit as bad or worse if the draws follow the law.
        worst: the outcome that contributes most, how often it was drawn, and how often the law expects it.
    """

    draws: int
    statistic: float
    freedom: int
    p_value: float
    worst: tuple[Outcome, int, float]


def fit(counts: Mapping[Outcome, int], law: Mapping[Outcome, float]) -> Fit[Outcome]:
    """Pearson's chi-square test of goodness of fit. Outcomes expected less than 5 times are pooled.

    Args:
        counts: how often each outcome was drawn, at least one draw in all.
        law: the probability of each outcome, summing to 1; outcomes that are not in it must not be drawn.
    """
    draws = sum(counts.values())
    expected = {outcome: draws * probability for outcome, probability in law.items() if probability > 0.0}
    excluded = next((outcome for outcome, count in counts.items() if count and outcome not in expected), None)
    cells = _pool(expected)
    if excluded is not None:
        return Fit(draws, math.inf, len(cells) - 1, 0.0, (excluded, counts[excluded], 0.0))
    statistic = 0.0
    for cell in cells:
        mean = sum(expected[outcome] for outcome in cell)
        statistic += (sum(counts.get(outcome, 0) for outcome in cell) - mean) ** 2 / mean
    worst = max(expected, key=lambda outcome: (counts.get(outcome, 0) - expected[outcome]) ** 2 / expected[outcome])
    freedom = len(cells) - 1
    p_value = chi_square_tail(statistic, freedom) if freedom else 1.0
    return Fit(draws, statistic, freedom, p_value, (worst, counts.get(worst, 0), expected[worst]))


def _pool(expected: Mapping[Outcome, float]) -> Sequence[Sequence[Outcome]]:
    """Cells of one outcome each, but rare ones together, with as many more as the pool needs to be large enough."""
    rising = sorted(expected, key=lambda outcome: expected[outcome])
    pooled: list[Outcome] = []
    mass = 0.0
    for outcome in rising:
        if expected[outcome] >= _LEAST_EXPECTED and (not pooled or mass >= _LEAST_EXPECTED):
            break
        pooled.append(outcome)
        mass += expected[outcome]
    return [*([pooled] if pooled else []), *([outcome] for outcome in rising[len(pooled) :])]


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values corrected for their number (Holm, Scandinavian Journal of Statistics 6, 1979), in the given order.

    If all hypotheses hold, the chance that any of them falls below a level is at most that level, however the tests
    depend on one another.
    """
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    corrected = [0.0] * len(p_values)
    highest = 0.0
    for rank, index in enumerate(order):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[index]))
        corrected[index] = highest
    return corrected


def chi_square_tail(statistic: float, freedom: int) -> float:
    """Probability that a chi-square variable with `freedom` degrees of freedom reaches `statistic`.

    It is the regularised upper incomplete gamma function Q(freedom / 2, statistic / 2), from the power series of its
    complement below the mean, and from the continued fraction (modified Lentz) above it: NIST's Digital Library of
    Mathematical Functions, 8.11.4 and 8.9.2.
    """
    shape, x = freedom / 2.0, statistic / 2.0
    if x <= 0.0:
        return 1.0
    scale = math.exp(shape * math.log(x) - x - math.lgamma(shape))
    if x < shape + 1.0:
        return max(0.0, 1.0 - scale * _lower_series(shape, x))
    return scale * _upper_fraction(shape, x)


def rounded(p_value: float) -> str:
    """A p-value for people; the smallest ones are beyond what a float can hold."""
    return f"{p_value:.2g}" if p_value > _TINY else f"below {_TINY:g}"


def _lower_series(shape: float, x: float) -> float:
    term = total = 1.0 / shape
    step = shape
    while term > total * _PRECISION:
        step += 1.0
        term *= x / step
        total += term
    return total


def _upper_fraction(shape: float, x: float) -> float:
    b = x + 1.0 - shape
    c, d = 1.0 / _TINY, 1.0 / b
    value = d
    index = 0
    while True:
        index += 1
        a = -index * (index - shape)
        b += 2.0
        d = 1.0 / _away_from_zero(a * d + b)
        c = _away_from_zero(b + a / c)
        value *= c * d
        if abs(c * d - 1.0) < _PRECISION:
            return value


def _away_from_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
