from __future__ import annotations

import time

import pytest

from borrador.engine.costs import MEASURED_ROWS, RowCosts, measure_row_costs
from borrador.models.scripted import ScriptedModel, ScriptedTarget
from borrador.models.target import Rows
from borrador.types import Float32Array


def test_costs_between_measured_sizes_lie_on_straight_lines() -> None:
    costs = RowCosts({1: 10.0, 4: 13.0, 8: 21.0})
    assert [costs(rows) for rows in (1, 2, 4, 6, 8, 12)] == pytest.approx([10.0, 11.0, 13.0, 17.0, 21.0, 29.0])


def test_more_rows_are_never_cheaper() -> None:
    costs = RowCosts({1: 10.0, 2: 8.0, 4: 12.0})
    assert costs(2) == 10.0


def test_costs_follow_what_passes_really_take() -> None:
    costs = RowCosts({1: 10.0, 4: 13.0})
    for _ in range(100):
        costs.observe(1, 20.0)
    assert costs(1) == pytest.approx(20.0, rel=0.01)
    assert costs(4) == pytest.approx(26.0, rel=0.01)


def test_one_stalled_pass_moves_costs_by_a_tenth_at_most() -> None:
    costs = RowCosts({1: 10.0, 4: 13.0})
    costs.observe(1, 1e6)
    assert costs(1) <= 11.0 + 1e-9


def test_a_single_measured_size_is_enough() -> None:
    assert RowCosts({1: 10.0})(3) == 30.0


class SlowTarget(ScriptedTarget):
    def forward(self, rows: Rows) -> Float32Array:
        time.sleep(0.001 * len(rows.tokens))
        return super().forward(rows)


def test_measuring_interleaves_sizes_within_its_budget_and_leaves_the_sequence_empty() -> None:
    target = SlowTarget(ScriptedModel(), 64)
    start = time.perf_counter()
    costs = measure_row_costs(target, budget_s=0.2)
    assert time.perf_counter() - start < 0.5
    assert costs(16) > 4 * costs(1)
    assert target.length == 0
    sizes = [len(rows.tokens) for rows in target.passes][1:]
    assert tuple(sizes[: 2 * len(MEASURED_ROWS)]) == MEASURED_ROWS * 2


def test_sizes_beyond_the_context_are_left_out() -> None:
    assert measure_row_costs(ScriptedModel().open(4), budget_s=0.01)(4) > 0.0
