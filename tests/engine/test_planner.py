from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.scripted import OracleDrafter

from borrador.draft.protocol import Price
from borrador.draft.steps import alone
from borrador.engine.candidates import Load
from borrador.engine.controller import RequestPlan
from borrador.engine.fixed_length import FixedLength
from borrador.engine.planner import Planner
from borrador.engine.profile import Profile
from borrador.engine.proposer import Desk
from borrador.models.scripted import ScriptedModel, ScriptedTarget
from borrador.types import Verdict


class PricedDrafter(OracleDrafter):
    """Counts how often its price was measured."""

    measured = 0

    def price(self) -> Price:
        self.measured += 1
        return Price(1e-9, 1e-9)


def target() -> ScriptedTarget:
    return ScriptedTarget(ScriptedModel(), 64)


def drafter() -> PricedDrafter:
    return PricedDrafter(lambda context: [len(context) % 7] * 8)


def play(planner: Planner, oracle: PricedDrafter, rounds: int) -> None:
    plan = planner.open()
    for length in range(1, rounds + 1):
        context = range(length)
        candidates = alone(plan.gather(Desk({oracle.name: oracle}, context, 1000), 8, Load()))
        draft = candidates.take([])
        plan.learn(draft, Verdict((), length % 7, False, 0), (length % 7,))


def test_nothing_is_measured_where_the_number_of_tokens_is_fixed() -> None:
    sequence, oracle = target(), drafter()
    planner = Planner(sequence, {oracle.name: oracle}, draft_tokens=3)
    assert isinstance(planner.open(), FixedLength)
    assert planner.pass_s is None
    assert (sequence.passes, oracle.measured) == ([], 0)


def test_a_request_may_have_a_number_of_its_own() -> None:
    oracle = drafter()
    planner = Planner(target(), {oracle.name: oracle})
    assert isinstance(planner.open(), RequestPlan)
    desk = Desk({oracle.name: oracle}, range(5), 1000)
    for count in (0, 2, 5):
        whole = alone(planner.open(count).gather(desk, 8, Load())).whole
        assert whole is not None
        assert len(whole.tokens) == count


def test_what_is_learnt_is_there_at_the_next_start_and_nothing_is_measured_again(tmp_path: Path) -> None:
    profile, oracle = Profile(tmp_path / "profile.json"), drafter()
    planner = Planner(target(), {oracle.name: oracle}, profile=profile)
    first = planner.open()
    play(planner, oracle, 40)
    planner.save()
    assert oracle.measured == 1
    stored = profile.read()["drafters"]["oracle"]
    assert planner._controller is not None
    assert stored["calibration"] == planner._controller.as_json()["oracle"]["calibration"]
    assert sum(stored["calibration"][0]) > 1, "how often it is asked depends on the machine's speed"
    again, sequence = drafter(), target()
    later = Planner(sequence, {again.name: again}, profile=profile)
    assert again.measured == 0
    assert {len(rows.tokens) for rows in sequence.passes} == {1}
    assert isinstance(first, RequestPlan)
    later.save()
    assert profile.read()["drafters"]["oracle"]["calibration"] == stored["calibration"]


@pytest.mark.parametrize(
    "damage",
    [
        {"seconds": [-1.0, 0.0]},
        {"seconds": [1.0]},
        {"average": [1.0, float("inf"), 1.0]},
        {"average": ["a", 1.0, 1.0]},
        {"calibration": [[1.0], [2.0]]},
        {"calibration": [[0.0] * 16, [1.0] * 16]},
        {"typical": 7.0},
        {"typical": None},
    ],
)
def test_a_drafter_whose_entry_is_damaged_is_measured_again(tmp_path: Path, damage: dict[str, Any]) -> None:
    profile, oracle = Profile(tmp_path / "profile.json"), drafter()
    planner = Planner(target(), {oracle.name: oracle}, profile=profile)
    play(planner, oracle, 3)
    planner.save()
    stored = json.loads(profile.path.read_text())
    stored["drafters"]["oracle"] |= damage
    profile.path.write_text(json.dumps(stored))
    again = drafter()
    Planner(target(), {again.name: again}, profile=profile)
    assert again.measured == 1


def test_learning_is_saved_now_and_then_and_other_drafters_stay(tmp_path: Path) -> None:
    profile, oracle = Profile(tmp_path / "profile.json"), drafter()
    profile.write({"drafters": {"another": {"typical": 0.5}}})
    planner = Planner(target(), {oracle.name: oracle}, profile=profile)
    play(planner, oracle, 3)
    planner.save(now=False)
    assert set(profile.read()["drafters"]) == {"another"}
    planner.save()
    assert set(profile.read()["drafters"]) == {"another", "oracle"}


def test_what_is_learnt_can_be_forgotten_and_brought_back() -> None:
    oracle = drafter()
    planner = Planner(target(), {oracle.name: oracle})
    new = planner.learnt
    play(planner, oracle, 10)
    learnt = planner.learnt
    calibration = json.dumps(learnt["drafters"]["oracle"]["calibration"])
    play(planner, oracle, 10)
    assert json.dumps(learnt["drafters"]["oracle"]["calibration"]) == calibration, "a copy"
    assert planner.learnt["drafters"] != learnt["drafters"]
    planner.restore(learnt)
    assert planner.learnt == learnt
    planner.restore({})
    assert planner.learnt == new
    assert oracle.measured == 1


def test_nothing_is_learnt_where_the_number_of_tokens_is_fixed() -> None:
    oracle = drafter()
    planner = Planner(target(), {oracle.name: oracle}, draft_tokens=3)
    planner.restore({"drafters": {}})
    assert planner.learnt == {}
    assert isinstance(planner.open(), FixedLength)
