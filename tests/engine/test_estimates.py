from __future__ import annotations

import json
import math

import pytest

from borrador.engine.estimates import Allowance, Calibration, Jury, Trust, Yield


def test_a_drafter_is_believed_until_its_tokens_were_tested() -> None:
    calibration = Calibration()
    assert calibration.acceptance(0.5) == pytest.approx(0.5)
    assert calibration.acceptance(0.999) == pytest.approx(0.9)
    for _ in range(60):
        calibration.learn(0.999, False)
        calibration.learn(0.5, True)
    assert calibration.acceptance(0.999) < 0.1
    assert calibration.acceptance(0.5) > 0.9
    assert calibration.acceptance(0.8) == pytest.approx(0.8)


@pytest.mark.parametrize("confidence", [math.nan, -3.0, 0.0])
def test_a_confidence_that_is_no_probability_counts_as_none(confidence: float) -> None:
    assert Calibration().acceptance(confidence) == 0.0
    assert Calibration().acceptance(7.0) == pytest.approx(0.9)


def test_a_text_that_departs_from_the_usual_is_noticed_within_a_few_tokens() -> None:
    harder, easier = Trust(), Trust()
    for _ in range(6):
        harder.learn(0.8, False)
        easier.learn(0.4, True)
    assert harder.correct(0.8) < 0.5
    assert easier.correct(0.4) > 0.55
    assert easier.correct(0.9) < 1.0


def test_a_yield_is_the_average_of_the_rounds_remembered() -> None:
    average = Yield(2.0, 4.0, 0.5, weight=4.0, window=10.0)
    assert (average.accepted, average.rows, average.spent_s) == pytest.approx((2.0, 4.0, 0.5))
    for _ in range(100):
        average.learn(3.0, 5.0, 0.1)
    assert (average.accepted, average.rows, average.spent_s) == pytest.approx((3.0, 5.0, 0.1), abs=0.01)
    later = average.copy(weight=1.0, window=10.0)
    later.learn(0.0, 1.0, 0.1)
    assert later.accepted == pytest.approx(2.7 / 1.9, abs=0.01)
    assert average.accepted == pytest.approx(3.0, abs=0.01)


def test_trials_are_paid_from_a_share_of_the_time_that_failures_halve() -> None:
    allowance = Allowance()
    allowance.settle(-Allowance.FIRST, trial=True)
    rounds = 0
    while not allowance.covers(1.0):
        allowance.rest()
        rounds += 1
    assert rounds == pytest.approx(2.0 / Allowance.MOST_SHARE, abs=1)
    allowance.settle(0.5, trial=True)
    assert allowance.covers(1.0)


def test_a_jury_doubts_what_one_drafter_alone_proposed_until_it_has_seen_what_comes_of_it() -> None:
    jury = Jury()
    assert jury(0.6, 1) == pytest.approx(0.45)
    assert jury(0.6, 2) == pytest.approx(0.6)
    assert jury(1.0, 1) == 1.0
    for _ in range(200):
        jury.learn(0.6, 1, True)
        jury.learn(0.6, 2, False)
    assert jury(0.6, 1) > 0.95
    assert jury(0.6, 2) < 0.05
    again = Jury.from_json(json.loads(json.dumps(jury.as_json())))
    assert [again(0.6, 1), again(0.6, 2), again(0.2, 1)] == [jury(0.6, 1), jury(0.6, 2), jury(0.2, 1)]
    for damaged in (None, [], [[1.0], [2.0]], [jury.as_json()[0]]):
        with pytest.raises((ValueError, TypeError)):
            Jury.from_json(damaged)
