"""Formulas against the papers' own numbers, and against the sums that they are short for."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.papers.simulation import TABLE_1, Published

from borrador.bench.theory import (
    Loop,
    best_gamma,
    expected_tokens,
    expected_tokens_by_position,
    operations_factor,
    overlap,
    walltime_factor,
)


@pytest.mark.parametrize("line", TABLE_1)
def test_table_1_of_2211_17192_is_reproduced_to_the_digit(line: Published) -> None:
    assert f"{operations_factor(line.alpha, line.gamma, 0.0):.2f}" == f"{line.operations:.2f}"
    assert f"{walltime_factor(line.alpha, line.gamma, 0.0):.2f}" == f"{line.speed:.2f}"


def test_overlap_is_one_less_the_total_variation() -> None:
    p, q = np.array([0.5, 0.3, 0.2, 0.0]), np.array([0.1, 0.3, 0.2, 0.4])
    assert overlap(p, q) == pytest.approx(0.6) == pytest.approx(1.0 - np.abs(p - q).sum() / 2)


def test_expected_tokens_are_the_mean_over_where_the_first_miss_is() -> None:
    alpha, gamma = 0.8, 4
    first_misses = sum((misses + 1) * alpha**misses * (1 - alpha) for misses in range(gamma))
    assert expected_tokens(alpha, gamma) == pytest.approx(first_misses + (gamma + 1) * alpha**gamma)
    assert expected_tokens(1.0, gamma) == gamma + 1
    assert expected_tokens(0.8, 0) == 1.0


def test_positions_of_one_rate_are_the_formula_with_that_rate() -> None:
    assert expected_tokens_by_position([0.7] * 5) == pytest.approx(expected_tokens(0.7, 5))
    assert expected_tokens_by_position([0.5, 0.0, 1.0]) == pytest.approx(1.5)


def test_predictions_of_table_2_of_2211_17192() -> None:
    """English to German, T5-XXL with its small draft model at T = 0: the paper predicts 3.2, and measures 3.4."""
    assert walltime_factor(0.75, 7, 0.02) == pytest.approx(3.2, abs=0.05)


def test_a_pass_that_costs_more_for_its_rows_takes_its_share_of_the_factor() -> None:
    assert walltime_factor(0.8, 3, 0.1, pass_ratio=1.3) == pytest.approx((1 + 0.8 + 0.64 + 0.512) / (1.3 + 0.3))


def test_drafting_pays_where_alpha_is_above_c() -> None:
    """Corollary 3.9: then some γ helps, by (1 + α) / (1 + c) at least."""
    assert best_gamma(lambda gamma: walltime_factor(0.3, gamma, 0.31), 32) == 0
    gamma = best_gamma(lambda gamma: walltime_factor(0.3, gamma, 0.29), 32)
    assert walltime_factor(0.3, gamma, 0.29) >= 1.3 / 1.29
    assert best_gamma(lambda gamma: walltime_factor(0.8, gamma, 0.1), 32) == 6


def test_a_loop_knows_its_time_per_token() -> None:
    plain = Loop(tokens=1.0, draft_s=0.0, pass_s=0.040, beside_s=0.002)
    loop = Loop(tokens=3.0, draft_s=0.016, pass_s=0.042, beside_s=0.002)
    assert loop.seconds == pytest.approx(0.060)
    assert loop.token_s == pytest.approx(0.020)
    assert loop.speedup(plain) == pytest.approx(2.1)


def test_a_loop_without_anything_beside_is_the_theorem() -> None:
    plain = Loop(tokens=1.0, draft_s=0.0, pass_s=0.040, beside_s=0.0)
    loop = Loop(tokens=expected_tokens(0.8, 3), draft_s=3 * 0.010, pass_s=0.050, beside_s=0.0)
    assert loop.speedup(plain) == pytest.approx(walltime_factor(0.8, 3, 0.25, pass_ratio=1.25))
