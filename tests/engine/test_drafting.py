from __future__ import annotations

from itertools import count

import pytest
from tests.scripted import OracleDrafter

from borrador.draft.protocol import CERTAIN, Price
from borrador.engine.candidates import Candidates
from borrador.engine.controller import Controller
from borrador.engine.costs import DraftCosts
from borrador.engine.drafting import Knowledge, Outlook, Pass, Pursuit
from borrador.engine.estimates import Yield
from borrador.engine.proposer import Desk
from borrador.types import Draft, Verdict

STEP_S = 0.004


def outlook() -> Outlook:
    average = Yield(2.0, 3.0, 3 * STEP_S, 5.0, 50.0)
    return Outlook(Knowledge(DraftCosts(Price(STEP_S, 0.0)), average), average)


def test_certain_tokens_do_not_count_as_steps_of_the_drafter() -> None:
    """Two steps of the usual time, each followed by tokens that took none."""
    expected, now = outlook(), [0.0]
    pursuit = Pursuit(expected, Pass(lambda rows: 0.02), 1.0, lambda: now[0])
    for _ in range(2):
        now[0] += STEP_S
        pursuit(0.9)
        pursuit(CERTAIN)
        pursuit(CERTAIN)
    assert pursuit.finish(6, unread=1) == pytest.approx(2 * STEP_S)
    assert expected.known.costs.token_s == pytest.approx(STEP_S)


def test_certain_tokens_survive_as_the_token_before_them_and_teach_nothing() -> None:
    expected = outlook()
    draft = Draft(tokens=(1, 2, 3, 4), confidence=(0.5, CERTAIN, CERTAIN, 0.5))
    survival = Candidates.merge([expected.proposal(draft)]).survival
    assert survival[0] == survival[1] == survival[2] > survival[3]
    before = expected.known.calibration.acceptance(1.0 - 1e-9)
    for _ in range(50):
        expected.learn_written(draft, (1, 2, 3, 9))
        expected.learn_verdict(draft, Verdict((0, 1, 2), 9, False, 4))
    assert expected.known.calibration.acceptance(1.0 - 1e-9) == before
    assert expected.acceptance(CERTAIN) == 1.0


def test_a_draft_is_worth_its_rows_behind_those_of_the_context() -> None:
    """Sixteen rows cost one pass, and each further one another: certain tokens pay in front of that edge alone."""
    ticks = count()
    plan = Controller(lambda rows: 1.0 + max(rows - 16, 0), {"oracle": Price()}, lambda: float(next(ticks))).open()
    drafter = OracleDrafter(lambda context: range(8))
    sessions = {"oracle": drafter}
    assert len(plan.draft(Desk(sessions, range(9), 100), 8).tokens) == 8
    assert len(plan.draft(Desk(sessions, range(9), 100, None, 12), 8).tokens) == 4
    assert plan.draft(Desk(sessions, range(9), 100, None, 16), 8).tokens == ()


def test_siblings_do_not_lower_what_is_expected_of_a_chains_next_token() -> None:
    chain, tree = outlook(), outlook()
    for _ in range(60):
        chain.learn_written(Draft(tokens=(1, 2), confidence=(0.9, 0.9)), (1, 2, 3))
        tree.learn_written(
            Draft(tokens=(1, 2, 8, 9), parents=(-1, 0, -1, 0), confidence=(0.9, 0.9, 0.1, 0.1)), (1, 2, 3)
        )
    assert tree.known.typical == pytest.approx(chain.known.typical)
    assert tree.acceptance(0.1) < 0.1 < 0.8 < tree.acceptance(0.9)
