from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from borrador.verify.statistics import chi_square_tail, fit, holm


@given(st.integers(1, 2000), st.floats(1e-3, 1e4))
def test_tail_of_chi_square_is_scipys(freedom: int, statistic: float) -> None:
    expected = stats.chi2.sf(statistic, freedom)
    assert chi_square_tail(statistic, freedom) == pytest.approx(
        expected, rel=1e-8, abs=1e-14 if expected > 0.5 else 1e-300
    )


def test_tail_of_chi_square_at_its_ends() -> None:
    assert chi_square_tail(0.0, 3) == 1.0
    assert chi_square_tail(1e6, 3) == 0.0
    assert chi_square_tail(2 * math.log(2), 2) == pytest.approx(0.5)


def test_fit_without_rare_outcomes_is_scipys() -> None:
    random = np.random.default_rng(6)
    law = random.dirichlet(np.full(9, 3.0))
    counts = random.multinomial(5000, law)
    found = fit(dict(enumerate(counts.tolist())), dict(enumerate(law.tolist())))
    reference = stats.chisquare(counts, 5000 * law)
    assert (found.draws, found.freedom) == (5000, 8)
    assert found.statistic == pytest.approx(reference.statistic)
    assert found.p_value == pytest.approx(reference.pvalue)
    contributions = (counts - 5000 * law) ** 2 / law
    worst, drawn, expected = found.worst
    assert worst == contributions.argmax()
    assert drawn == counts[worst]
    assert expected == pytest.approx(5000 * law[worst])


def test_rare_outcomes_are_pooled_until_five_draws_are_expected() -> None:
    law = {"a": 0.6, "b": 0.31, "c": 0.06, "d": 0.02, "e": 0.01}
    counts = {"a": 55, "b": 33, "c": 8, "d": 4}
    found = fit(counts, law)  # of 100 draws d and e alone would expect 3: c joins them
    reference = stats.chisquare([55, 33, 12], [60, 31, 9])
    assert found.freedom == 2
    assert found.statistic == pytest.approx(reference.statistic)
    assert found.p_value == pytest.approx(reference.pvalue)


def test_a_draw_that_the_law_excludes_is_no_fit_at_all() -> None:
    found = fit({"a": 9999, "z": 1}, {"a": 1.0, "z": 0.0})
    assert (found.p_value, found.statistic, found.worst) == (0.0, math.inf, ("z", 1, 0.0))


def test_a_certain_outcome_leaves_nothing_to_compare() -> None:
    found = fit({"a": 100}, {"a": 1.0})
    assert (found.freedom, found.p_value) == (0, 1.0)


def test_p_values_of_true_laws_are_uniform_and_those_of_wrong_laws_are_not() -> None:
    random = np.random.default_rng(7)
    law = random.dirichlet(np.full(40, 0.5))
    wrong = 0.9 * law + 0.1 * np.roll(law, 1)

    def p_value(drawn_from: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
        counts = Counter(dict(enumerate(random.multinomial(20_000, drawn_from).tolist())))
        return fit(counts, dict(enumerate(law.tolist()))).p_value

    right = [p_value(law) for _ in range(400)]
    assert stats.kstest(right, "uniform").pvalue > 1e-3
    assert max(p_value(wrong) for _ in range(20)) < 1e-9


def test_holm_multiplies_by_the_hypotheses_that_are_left() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []
