from __future__ import annotations

from dataclasses import replace

import pytest
from tests.cli.scripted_llm import make_round

from borrador.chat.local import SpeedUp
from borrador.types import Reason, RoundRecord

REASON = Reason(plain_s=0.02, round_s=0.03, expected=2.0, speed=2.0, considered=())


def timed(record: RoundRecord, total_s: float) -> RoundRecord:
    return replace(record, total_s=total_s, reason=REASON)


def test_speed_up_is_what_plain_passes_would_have_taken_against_what_rounds_took() -> None:
    speedup = SpeedUp()
    speedup.add(timed(make_round(1, (), 0, 1), 9.0))
    speedup.add(timed(make_round(2, (2, 3, 4), 3, 5), 0.03))
    speedup.add(timed(make_round(3, (), 0, 1), 0.02))
    assert speedup.ratio == pytest.approx(5 * 0.02 / 0.05)


@pytest.mark.parametrize("record", [timed(make_round(2, (), 0, 1), 0.02), make_round(2, (2, 3), 2, 4)])
def test_no_speed_up_without_drafts_or_without_costs(record: RoundRecord) -> None:
    speedup = SpeedUp()
    speedup.add(record)
    assert speedup.ratio is None
