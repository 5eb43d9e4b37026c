from __future__ import annotations

from types import SimpleNamespace

import pytest

from borrador.engine.candidates import Load
from borrador.engine.measuring import MEASURED_ROWS, measure_row_costs
from borrador.models.scripted import ScriptedModel, ScriptedTarget
from borrador.models.target import BestTokens, Rows


class SlowTarget(ScriptedTarget):
    """A row takes a millisecond by a clock of its own, and a tenth more behind more than fifty tokens."""

    now = 0.0

    def best(self, rows: Rows, count: int, *, within: int | None = None, normalised: bool = False) -> BestTokens:
        self.now += 0.001 * len(rows.tokens) * (1.1 if self.length > 50 else 1.0)
        return super().best(rows, count, within=within, normalised=normalised)


def test_measuring_interleaves_sizes_within_its_budget_and_leaves_the_sequence_empty(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A third of the budget is warm-up; a sweep takes 58.9 ms, so that three of them fit."""
    target = SlowTarget(ScriptedModel(), 64)
    monkeypatch.setattr("borrador.engine.measuring.time", SimpleNamespace(perf_counter=lambda: target.now))
    costs = measure_row_costs(target, budget_s=0.2)
    assert [costs(rows) for rows in (1, 8, 16)] == pytest.approx([0.001, 0.008, 0.016])
    assert costs.behind(Load(1, 1, 72.0))(8) == pytest.approx(0.008 * 1.1)
    assert target.length == 0
    sizes = [len(rows.tokens) for rows in target.passes]
    assert sizes == [1] * 67 + [*MEASURED_ROWS, 1, 8] * 3


def test_sizes_beyond_the_context_are_left_out() -> None:
    assert measure_row_costs(ScriptedModel().open(4), budget_s=0.01)(4) > 0.0
