from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import bootstrap

from borrador.bench.statistics import Interval, interval_of, median_interval, median_of_known


def test_median_is_of_what_is_known() -> None:
    assert median_of_known([4.0, None, 1.0, 2.0, None]) == 2.0
    assert median_of_known([None, None]) is None
    assert median_of_known([]) is None


def test_equal_values_have_an_interval_without_width() -> None:
    assert median_interval([1.5] * 7) == Interval(1.5, 1.5)


def test_one_value_says_nothing_of_its_spread() -> None:
    assert median_interval([]) is None
    assert median_interval([1.2]) is None


def test_two_values_bound_their_own_interval() -> None:
    assert median_interval([1.0, 2.0]) == Interval(1.0, 2.0)


@pytest.mark.parametrize("count", [10, 71])
def test_interval_is_that_of_a_library(count: int) -> None:
    values = np.random.default_rng(5).lognormal(0.3, 0.25, count)
    found = median_interval(values.tolist())
    expected = bootstrap(
        (values,), np.median, n_resamples=20_000, method="percentile", rng=np.random.default_rng(1)
    ).confidence_interval
    assert found is not None
    assert list(found) == pytest.approx([expected.low, expected.high], rel=0.01)
    assert found.low < float(np.median(values)) < found.high


def test_same_values_give_the_same_interval() -> None:
    values = [1.0, 1.3, 0.9, 2.0, 1.1]
    assert median_interval(values) == median_interval(values)


def test_many_values_are_drawn_in_parts() -> None:
    values = np.random.default_rng(5).normal(1.0, 0.1, 100_000).tolist()
    found = median_interval(values, resamples=100)
    assert found is not None
    assert found.high - found.low < 0.01


def test_interval_of_a_ratio_draws_both_its_parts_together() -> None:
    parts = np.array([[2.0, 1.0], [20.0, 10.0], [6.0, 3.0], [0.2, 0.1]])
    found = interval_of(parts, lambda drawn: drawn.sum(axis=1)[:, 0] / drawn.sum(axis=1)[:, 1])
    assert found is not None
    assert list(found) == pytest.approx([2.0, 2.0])
