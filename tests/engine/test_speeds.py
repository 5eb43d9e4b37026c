from __future__ import annotations

from dataclasses import replace

import pytest

from borrador.engine.speeds import Speed, Speeds, Step

DRAFTED = Step(
    requests=4, tokens=9, total_s=0.06, draft_s=0.01, pass_s=0.04, plain_pass_s=0.03, drafts=True, verifies=True
)
PLAIN = Step(
    requests=4, tokens=4, total_s=0.05, draft_s=0.0, pass_s=0.04, plain_pass_s=None, drafts=False, verifies=False
)


def test_nothing_is_said_before_it_was_measured() -> None:
    speeds = Speeds()
    assert speeds.speculative is None
    assert speeds.plain is None


def test_a_step_with_drafts_counts_for_both_speeds() -> None:
    speeds = Speeds()
    speeds.observe(DRAFTED)
    speeds.observe(DRAFTED)
    assert speeds.speculative == pytest.approx(9 / 0.06)
    assert speeds.plain == pytest.approx(4 / (0.01 + 0.03))  # what is neither drafting nor the pass, and T(m)


def test_a_pass_without_drafts_speaks_for_itself() -> None:
    speeds = Speeds()
    speeds.observe(replace(DRAFTED, tokens=4, verifies=False))
    assert speeds.speculative == pytest.approx(4 / 0.06)
    assert speeds.plain == pytest.approx(4 / 0.05)


def test_steps_without_drafters_count_where_nothing_else_is_known() -> None:
    speeds = Speeds()
    speeds.observe(PLAIN)
    assert speeds.speculative is None
    assert speeds.plain == pytest.approx(4 / 0.05)
    speeds.observe(replace(DRAFTED, plain_pass_s=None))
    assert speeds.plain == pytest.approx(4 / 0.05)
    speeds.observe(DRAFTED)
    assert speeds.plain == pytest.approx(4 / 0.04)


def test_what_is_older_by_30_seconds_counts_half() -> None:
    speed = Speed()
    speed.add(300, 30.0)
    speed.add(600, 30.0)
    assert speed.per_second == pytest.approx((150 + 600) / (15.0 + 30.0))
