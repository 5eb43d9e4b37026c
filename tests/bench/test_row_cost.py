from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from borrador.bench.row_cost import RowCosts, fill_context, measure_rows
from borrador.models.target import BestTokens, Rows, Target
from borrador.types import Float32Array


class TickingTarget:
    """A target whose pass over m rows takes 10 + m ticks, and whose first passes are slow."""

    vocabulary_size = 4
    context_length = 1000

    def __init__(self) -> None:
        self.now = 0.0
        self.length = 0
        self.passes: list[tuple[int, int]] = []

    def forward(self, rows: Rows) -> Float32Array:
        count = len(rows.tokens)
        cold = count not in [passed for passed, _ in self.passes]
        self.passes.append((count, rows.logits_from))
        self.now += 10.0 + count + (500.0 if cold else 0.0)
        return np.zeros((count - rows.logits_from, 4), np.float32)

    def best(self, rows: Rows, count: int, *, within: int | None = None, normalised: bool = False) -> BestTokens:
        raise AssertionError("rows are measured with all their logits")

    def commit(self, path: Sequence[int]) -> None:
        self.length += len(path)

    def rewind(self, length: int) -> None:
        self.length = length

    def assume(self, length: int) -> None:
        self.length = length

    def copy_from(self, source: Target, length: int) -> None:
        raise AssertionError("a measurement fills its own context")

    def clock(self) -> float:
        return self.now


def test_medians_are_those_of_warm_passes_with_logits_for_every_row() -> None:
    target = TickingTarget()
    seconds = measure_rows(target, range(8), 1, (1, 2, 4), target.clock)
    assert seconds == {1: 11.0, 2: 12.0, 4: 14.0}
    assert {logits_from for _, logits_from in target.passes} == {0}


def test_sizes_are_interleaved() -> None:
    target = TickingTarget()
    measure_rows(target, range(8), 2, (1, 2), target.clock)
    assert [count for count, _ in target.passes] == [1, 2, 1, 2, 1, 2]


def test_context_is_filled_in_chunks() -> None:
    target = TickingTarget()
    fill_context(target, range(150))
    assert target.length == 150
    assert target.passes == [(64, 63), (64, 63), (22, 21)]


def test_costs_relate_passes_to_one_row_and_to_the_memory() -> None:
    costs = RowCosts(
        {1: 0.010, 8: 0.015}, weights_bytes=100_000_000, read_bandwidth=20e9, row_macs=10**8, integer_peak=1e11
    )
    assert costs.ratio(8) == pytest.approx(1.5)
    assert costs.bandwidth_share(1) == pytest.approx(0.5)
    assert costs.as_json() == {
        "rows_ms": {"1": 10.0, "8": 15.0},
        "weights_bytes": 100_000_000,
        "read_bandwidth_bytes_s": 20_000_000_000,
        "row_macs": 100_000_000,
        "integer_peak_mac_s": 100_000_000_000,
        "limit_ms": {"1": 5.0, "8": 8.0},
    }


def test_the_limit_is_the_slower_of_reading_the_weights_and_multiplying() -> None:
    costs = RowCosts(
        {1: 0.010, 8: 0.016}, weights_bytes=100_000_000, read_bandwidth=20e9, row_macs=10**8, integer_peak=1e11
    )
    assert costs.limit(1) == pytest.approx(0.005)
    assert costs.limit(8) == pytest.approx(0.008)
    assert costs.limit_share(8) == pytest.approx(0.5)
