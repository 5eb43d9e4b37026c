from __future__ import annotations

import itertools

from borrador.engine.pace import Pace, Purse


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


def test_drafts_that_save_time_are_asked_for_as_long_as_they_do() -> None:
    purse = Purse()
    for gained_s in (0.2, 0.3, -0.1, 0.2, -0.2):
        assert not purse.is_empty
        purse.settle(gained_s, pass_s=1.0)


def test_what_drafts_lose_is_bounded_by_a_share_of_the_time() -> None:
    """Each one asked for takes a fifth of a pass in vain."""
    purse, lost = Purse(), 0.0
    for _ in range(1000):
        gained_s = 0.0 if purse.is_empty else -0.2
        lost -= gained_s
        purse.settle(gained_s, pass_s=1.0)
    assert 0.004 * 1000 < lost <= 0.005 * 1000 + 0.2


def test_savings_of_long_ago_do_not_pay_for_losses_without_end() -> None:
    purse = Purse()
    for _ in range(1000):
        purse.settle(0.5, pass_s=1.0)
    purse.settle(-0.3, pass_s=1.0)
    assert purse.is_empty
