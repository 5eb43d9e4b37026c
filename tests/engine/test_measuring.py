from __future__ import annotations

import time

from borrador.engine.candidates import Load
from borrador.engine.measuring import MEASURED_ROWS, measure_row_costs
from borrador.models.scripted import ScriptedModel, ScriptedTarget
from borrador.models.target import BestTokens, Rows


class SlowTarget(ScriptedTarget):
    """A row takes a millisecond, and a tenth more behind more than fifty tokens."""

    def best(self, rows: Rows, count: int, *, within: int | None = None, normalised: bool = False) -> BestTokens:
        time.sleep(0.001 * len(rows.tokens) * (1.1 if self.length > 50 else 1.0))
        return super().best(rows, count, within=within, normalised=normalised)


def test_measuring_interleaves_sizes_within_its_budget_and_leaves_the_sequence_empty() -> None:
    target = SlowTarget(ScriptedModel(), 64)
    start = time.perf_counter()
    costs = measure_row_costs(target, budget_s=0.2)
    assert time.perf_counter() - start < 0.5
    assert costs(16) > 4 * costs(1)
    assert costs.behind(Load(1, 1, 1064.0))(8) > costs(8)
    assert target.length == 0
    sizes = [len(rows.tokens) for rows in target.passes]
    warm_up = next(index for index, rows in enumerate(sizes) if rows > 1) - 1
    sweep = [*MEASURED_ROWS, 1, 8]
    assert warm_up > 5
    assert sizes[warm_up:][: 2 * len(sweep)] == sweep * 2


def test_sizes_beyond_the_context_are_left_out() -> None:
    assert measure_row_costs(ScriptedModel().open(4), budget_s=0.01)(4) > 0.0
