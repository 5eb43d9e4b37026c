from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.scripted import scripted_answer
from tests.verify.scripted import EXTENT, PROMPTS, make_rig

from borrador.draft.lookup import LookupDrafter
from borrador.draft.model import ModelDraftSession
from borrador.draft.recycle import RecycleDrafter
from borrador.sampling import acceptance
from borrador.sampling.noise import FreshNoise
from borrador.verify.answers import AnswerStep, greedy_cases
from borrador.verify.law import CERTAIN, CONTROLS, DRAWN, LEVEL, LawStep
from borrador.verify.rig import Rig

FEW = 100  # draws, where it does not matter what they are


def run(rig: Rig, *, places: int = 1, draws: int = EXTENT.draws, break_residual: bool = False) -> LawStep:
    extent = replace(EXTENT, places=places, draws=draws)
    greedy = AnswerStep("greedy answers", greedy_cases(PROMPTS, extent), extent)
    greedy.run(rig)
    step = LawStep("sampling law", greedy, extent, break_residual=break_residual)
    step.run(rig)
    return step


@pytest.fixture(scope="module")
def broken() -> LawStep:
    return run(make_rig(), break_residual=True)


def test_what_ships_follows_the_law_and_the_control_does_not() -> None:
    report = run(make_rig(), places=2).report()
    assert report.passed
    assert len(report.figures["tests"]) == 2 * 3 * len((*DRAWN, *CERTAIN))
    assert len(report.figures["controls"]) == 2 * 3 * len(CONTROLS)
    assert report.figures["controls_noticed"] > 0
    assert report.figures["smallest_p"] > LEVEL
    assert {test["tokens"] for test in report.figures["tests"]} == {1, 2, 3}
    assert any("temperature 0.7, top-k 6, top-p 0.9" in test["name"] for test in report.figures["tests"])


def test_the_step_is_taken_once() -> None:
    step = run(make_rig(), draws=FEW)
    before = step.report()
    step.run(make_rig(threads=2))
    assert step.report() == before


def test_a_residual_that_is_broken_on_purpose_is_found(broken: LawStep) -> None:
    report = broken.report()
    assert report.finding is not None
    assert "with a wrong residual" in report.finding.describe()
    assert report.finding.as_json()["p_value"] < LEVEL


def test_a_broken_residual_in_what_ships_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acceptance, "residual", lambda p, q: p)
    finding = run(make_rig()).report().finding
    assert finding is not None
    assert "drawn chains" in finding.describe()


def test_a_drafter_that_draws_from_another_law_than_it_says_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    choose = ModelDraftSession._choose

    def sharper(self: Any, logits: Any, history: Any, law_out: Any) -> Any:
        token, belief = choose(self, logits, history, law_out)
        law_out[:] = 1.0 / len(law_out)
        return token, belief

    monkeypatch.setattr(ModelDraftSession, "_choose", sharper)
    finding = run(make_rig()).report().finding
    assert finding is not None
    assert "drawn chains" in finding.describe()


def test_noise_that_is_not_fair_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FreshNoise, "accepts", lambda self, probability: self._uniform() < 0.8 * probability)
    assert run(make_rig()).report().finding is not None


def test_a_finding_says_what_was_drawn_and_how_often_it_should_have_been(broken: LawStep) -> None:
    finding = broken.report().finding
    assert finding is not None
    found = finding.as_json()
    assert found["draws"] == EXTENT.draws
    assert set(found["text"]) <= set("abcdefghijklmno")
    assert abs(found["drawn"] - found["expected"]) > 3 * found["expected"] ** 0.5
    assert f"was drawn {found['drawn']} times of {EXTENT.draws}" in finding.describe()


def test_where_nothing_is_left_to_chance_the_step_cannot_tell() -> None:
    report = run(make_rig(scripted_answer(PROMPTS[0].text, "abcdefghijkl" * 8), drafters=()), draws=FEW).report()
    assert report.finding is None
    assert not report.conclusive
    assert not report.passed


def test_what_stands_for_what_is_said() -> None:
    remarks = run(make_rig(drafters=[LookupDrafter()]), draws=FEW).report().remarks
    assert remarks == (
        "sampling law: no draft model to draw from; the model's own logits, disturbed, stand in for one's",
        "sampling law: lookup draws nothing; rejection of certain chains and trees stands for it",
    )
    remarks = run(make_rig(drafters=[LookupDrafter(), RecycleDrafter()]), draws=FEW).report().remarks
    stand_in = "rejection of certain chains and trees stands for them"
    assert remarks[1] == f"sampling law: lookup, recycle draw nothing; {stand_in}"
