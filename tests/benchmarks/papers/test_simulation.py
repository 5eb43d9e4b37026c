"""The product's rejection rule, played for the paper's table."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.papers.simulation import TABLE_1, Published, laws, simulate

from borrador.bench.theory import overlap


@pytest.mark.parametrize("alpha", [0.6, 0.7, 0.8, 0.9])
def test_laws_overlap_by_alpha_and_leave_every_token_in_doubt(alpha: float) -> None:
    p, q = laws(alpha, 3)
    for p_row, q_row in zip(p, q, strict=True):
        assert p_row.sum() == pytest.approx(1.0) == q_row.sum()
        assert overlap(p_row, q_row) == pytest.approx(alpha, abs=1e-12)
        assert min(p_row.min(), q_row.min()) > 0.0
    assert not np.array_equal(p[0], p[1])


@pytest.mark.parametrize("line", TABLE_1)
def test_simulated_factors_are_the_papers_within_one_percent(line: Published) -> None:
    played = simulate(line.alpha, line.gamma)
    assert played.operations == pytest.approx(line.operations, rel=0.01)
    assert played.speed == pytest.approx(line.speed, rel=0.01)
