from __future__ import annotations

import pytest

from borrador.draft.few_rows import FewRows
from borrador.draft.model import ModelDrafter
from borrador.models.scripted import ScriptedModel


def costs(*seconds: float) -> FewRows:
    few = FewRows()
    for rows, cost in enumerate(seconds, 1):
        few.observe(rows, cost)
    return few


@pytest.mark.parametrize(
    ("seconds", "unread", "trust", "length"),
    [
        ((1.0, 1.0, 1.0, 1.0), 1, 0.1, 3),
        ((1.0, 1.0, 1.0, 1.0), 2, 0.9, 2),
        ((1.0, 1.0, 1.0, 1.0), 9, 0.9, 0),
        ((1.0, 1.1, 1.2, 1.3), 1, 0.9, 3),  # 3.44 tokens for 1.3
        ((1.0, 1.1, 1.2, 1.3), 1, 0.5, 2),  # 1.75 / 1.2 = 1.458, 1.875 / 1.3 = 1.442, 1.5 / 1.1 = 1.364
        ((1.0, 1.1, 1.2, 1.3), 1, 0.05, 0),
        ((1.0, 2.0, 3.0, 4.0), 1, 0.99, 0),
    ],
)
def test_a_hint_is_as_long_as_pays(seconds: tuple[float, ...], unread: int, trust: float, length: int) -> None:
    assert costs(*seconds).hint_length(unread, trust) == length


def test_sizes_that_were_not_seen_cost_as_assumed_beside_those_that_were() -> None:
    few = FewRows()
    assert [few.seconds(rows) for rows in range(1, 5)] == [1.0, 1.05, 1.1, 1.15]
    few.observe(2, 0.021)
    assert few.seconds(1) == pytest.approx(0.02)
    assert few.seconds(4) == pytest.approx(0.023)
    few.observe(4, 0.04)
    assert few.seconds(3) == pytest.approx(0.022)  # the smaller of two neighbours that are equally near
    few.observe(5, 9.0)
    assert few.seconds(4) == pytest.approx(0.04)


def test_a_pass_that_was_stalled_moves_the_costs_a_little_and_a_change_moves_them_for_good() -> None:
    few = costs(1.0)
    few.observe(1, 50.0)
    assert few.seconds(1) == pytest.approx(1.055)
    for _ in range(60):
        few.observe(1, 2.0)
    assert few.seconds(1) == pytest.approx(2.0, rel=0.02)


def test_a_machine_that_becomes_slower_makes_no_size_dearer_than_another() -> None:
    few = costs(1.0, 1.1, 1.2, 1.3)
    for _ in range(100):
        few.observe(1, 3.0)
    assert few.seconds(4) / few.seconds(1) == pytest.approx(1.3, rel=0.15)
    for _ in range(100):
        few.observe(1, 3.0)
        few.observe(4, 6.0)
    assert few.seconds(4) / few.seconds(1) == pytest.approx(2.0, rel=0.05)


def test_hints_that_turn_out_dear_are_given_up() -> None:
    few = costs(1.0)
    assert few.hint_length(1, 0.5) == 3
    for rows in (4, 3, 2):
        few.observe(rows, float(rows))
    assert few.hint_length(1, 0.9) == 0


def test_measuring_a_drafters_price_tells_what_its_passes_over_a_few_rows_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    cost = {1: 1.0, 2: 1.3, 3: 1.2, 4: 1.9, 32: 4.0}
    monkeypatch.setattr("borrador.draft.model.fastest_pass", lambda target, rows, repeats: cost[len(rows.tokens)])
    drafter = ModelDrafter("small", ScriptedModel(), context_length=60, vocabulary_size=16)
    assert drafter.price() == (1.0, 4.0 / 32)
    assert [drafter.few_rows.seconds(rows) for rows in range(1, 5)] == [1.0, 1.3, 1.2, 1.9]
