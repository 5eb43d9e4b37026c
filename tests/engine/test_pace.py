from __future__ import annotations

import itertools

from borrador.engine.pace import Pace


def asked(pace: Pace, rounds: int, saved_s: float, spent_s: float = 1.0) -> list[int]:
    """The rounds in which the drafters were asked, where each that asks saves the same."""
    found = []
    for number in range(rounds):
        if pace.asks():
            found.append(number)
            pace.settle(saved_s, spent_s)
    return found


def test_drafters_that_pay_are_always_asked() -> None:
    assert asked(Pace(), 100, saved_s=1.5) == list(range(100))


def test_drafters_that_do_not_pay_rest_longer_and_longer() -> None:
    found = asked(Pace(), 200, saved_s=0.0)
    assert found[:4] == [0, 1, 2, 3]
    rests = [later - earlier for earlier, later in itertools.pairwise(found[3:])]
    assert rests == [2, 3, 5, 9, 17, 33, 33, 33, 33]


def test_what_rows_cost_in_vain_counts_too() -> None:
    assert len(asked(Pace(), 200, saved_s=-5.0, spent_s=0.0)) < 15


def test_drafters_that_begin_to_pay_are_asked_again_at_once() -> None:
    pace = Pace()
    asked(pace, 150, saved_s=0.0)
    found = asked(pace, 100, saved_s=3.0)
    assert found[0] <= 33
    assert found == list(range(found[0], 100))


def test_a_round_in_vain_between_good_ones_changes_nothing() -> None:
    pace = Pace()
    asked(pace, 20, saved_s=3.0)
    for _ in range(20):
        assert asked(pace, 1, saved_s=0.0) == [0]
        assert asked(pace, 1, saved_s=3.0) == [0]
