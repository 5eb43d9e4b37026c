from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from borrador.draft.protocol import Price
from borrador.engine.candidates import Load
from borrador.engine.costs import ContextCosts, DraftCosts, RowCosts, rising


def test_costs_between_measured_sizes_lie_on_straight_lines() -> None:
    costs = RowCosts({1: 10.0, 4: 13.0, 8: 21.0})
    assert [costs(rows) for rows in (1, 2, 4, 6, 8, 12)] == pytest.approx([10.0, 11.0, 13.0, 17.0, 21.0, 29.0])


def test_more_rows_are_never_cheaper() -> None:
    costs = RowCosts({1: 10.0, 2: 8.0, 4: 12.0, 8: 11.0})
    assert [costs(rows) for rows in (1, 2, 3, 4, 8)] == pytest.approx([9.0, 9.0, 10.25, 11.5, 11.5])


@given(st.lists(st.floats(0.0, 100.0), min_size=1, max_size=9))
def test_no_rising_sequence_lies_closer(values: list[float]) -> None:
    nearest = rising(values)
    assert all(low <= high for low, high in itertools.pairwise(nearest))
    for start in range(len(values)):  # the residuals of every pool sum to zero, and to no more than that up to any cut
        if start == 0 or nearest[start] > nearest[start - 1]:
            end = next((i for i in range(start, len(values)) if nearest[i] > nearest[start]), len(values))
            residuals = list(itertools.accumulate(values[i] - nearest[i] for i in range(start, end)))
            assert residuals[-1] == pytest.approx(0.0, abs=1e-9)
            assert min(residuals) >= -1e-9


def test_costs_follow_what_passes_really_take() -> None:
    costs = RowCosts({1: 10.0, 4: 13.0})
    for _ in range(100):
        costs.observe(1, 20.0)
    assert costs(1) == pytest.approx(20.0, rel=0.01)
    assert costs(4) == pytest.approx(26.0, rel=0.15)


def test_the_shape_of_costs_is_learnt_as_well_as_their_level() -> None:
    costs = RowCosts({1: 10.0, 2: 10.0, 4: 11.0, 8: 12.0})
    for _ in range(300):
        for rows, seconds in ((1, 10.0), (2, 11.0), (3, 13.0), (4, 15.0), (6, 20.0), (8, 25.0)):
            costs.observe(rows, seconds)
    assert [costs(rows) for rows in (1, 2, 4, 8)] == pytest.approx([10.0, 11.0, 15.0, 25.0], rel=0.05)


def test_noise_does_not_move_a_size_that_no_pass_has() -> None:
    """On a machine with neighbours most passes are a little late, and a few very much so."""
    random = np.random.default_rng(0)
    true = RowCosts({1: 10.0, 2: 10.2, 4: 11.0, 8: 15.0})
    costs = RowCosts({1: 10.0, 2: 10.2, 4: 11.0, 8: 15.0})
    for rows in random.choice([1, 1, 1, 1, 1, 1, 2, 3, 4], size=20_000):
        late = random.exponential(0.1) + (random.random() < 0.05)
        costs.observe(int(rows), true(float(rows)) * (1.0 + late))
    assert costs(8) / costs(1) == pytest.approx(1.5, rel=0.15)


def test_a_size_that_was_not_seen_lately_follows_the_level_of_those_that_were() -> None:
    costs = RowCosts({1: 10.0, 2: 10.0, 4: 11.0, 8: 12.0})
    for slower in (1.0, 3.0, 1.0):
        for _ in range(100):
            costs.observe(1, 10.0 * slower)
            costs.observe(2, 10.0 * slower)
        assert [costs(rows) for rows in (4, 8)] == pytest.approx([11.0 * slower, 12.0 * slower], rel=0.05)


def test_what_is_learnt_of_a_size_is_not_forgotten_while_it_is_not_seen() -> None:
    costs = RowCosts({1: 10.0, 4: 11.0, 8: 12.0})
    for _ in range(100):
        costs.observe(1, 10.0)
        costs.observe(4, 15.0)
    for _ in range(300):
        costs.observe(1, 10.0)
    assert costs(4) == pytest.approx(15.0, rel=0.05)


def test_passes_that_take_no_time_by_a_coarse_clock_are_borne() -> None:
    costs = RowCosts({1: 0.0, 4: 0.0})
    costs.observe(4, 0.0)
    assert 0.0 < costs(4) < 1e-6


def test_prices_of_drafting_follow_what_it_takes() -> None:
    costs = DraftCosts(Price(1.0, 0.1))
    for _ in range(60):
        costs.observe_token(2.0)
        costs.observe_reading(50, 10.0)
    assert costs.token_s == pytest.approx(2.0, rel=0.02)
    assert costs.context_token_s == pytest.approx(0.2, rel=0.02)


def test_proposals_that_take_time_give_their_tokens_a_price() -> None:
    quick, slow = DraftCosts(Price()), DraftCosts(Price())
    for call in range(100):
        quick.observe_call(1000.0 if call % 20 == 0 else 0.1, 4, limit_s=1.0)
        slow.observe_call(3.0, 4, limit_s=1.0)
    assert quick.token_s == 0.0
    assert slow.token_s == pytest.approx(3.0 / 4, rel=0.01)


def test_one_stalled_pass_moves_costs_by_a_tenth_at_most() -> None:
    costs = RowCosts({1: 10.0, 4: 13.0})
    costs.observe(1, 1e6)
    assert costs(1) <= 11.0 + 1e-9


def test_a_single_measured_size_is_enough() -> None:
    assert RowCosts({1: 10.0})(3) == pytest.approx(30.0)


def test_a_context_adds_to_each_row_and_once_for_each_request() -> None:
    costs = RowCosts({1: 10.0, 4: 13.0}, ContextCosts(0.001, 0.002))
    assert costs.behind(Load(1, 1, 1064.0))(1) == pytest.approx(10.0 + 1.0 + 2.0)
    assert costs.behind(Load(2, 2, 1064.0))(4) == pytest.approx(13.0 + 2.0 + 8.0)
    for _ in range(100):
        costs.observe(1, 26.0, Load(1, 1, 1064.0))
    assert costs.behind(Load(1, 1, 1064.0))(1) == pytest.approx(26.0, rel=0.01)
    assert 20.0 < costs(1) < 23.0  # most of the surprise belongs to what is most of the pass


def test_passes_larger_than_any_measured_become_sizes_of_their_own() -> None:
    costs = RowCosts({1: 10.0, 16: 25.0})
    for _ in range(200):
        costs.observe(64, 200.0)
        costs.observe(1, 10.0)
        costs.observe(16, 25.0)
    assert [costs(rows) for rows in (1, 16, 64)] == pytest.approx([10.0, 25.0, 200.0], rel=0.1)


def test_costs_are_stored_and_what_is_damaged_is_refused() -> None:
    costs = RowCosts({1: 10.0, 4: 13.0}, ContextCosts(0.001, 0.002))
    costs.scale(20.0)
    stored = json.loads(json.dumps(costs.as_json()))
    again = RowCosts.from_json(stored)
    load = Load(1, 1, 500.0)
    assert [again.behind(load)(rows) for rows in (1, 3, 8)] == pytest.approx(
        [costs.behind(load)(rows) for rows in (1, 3, 8)]
    )
    assert again(1) == pytest.approx(20.0)
    damaged: list[dict[str, object]] = [
        {"rows": [4, 1]}, {"rows": [2, 4]}, {"rows": [1.0, 4]}, {"seconds": [1.0]}, {"seconds": [math.nan, 1.0]},
        {"seconds": [-1.0, 1.0]}, {"seconds": [0.0, 1.0]}, {"seconds": "ab"}, {"context": [1.0]}, {"context": None},
    ]  # fmt: skip
    for change in damaged:
        with pytest.raises((ValueError, KeyError, TypeError)):
            RowCosts.from_json(stored | change)
