from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.scripted import VOCABULARY
from tests.verify.scripted import EXTENT, PROMPTS, ForgetfulModel, WrongModel, make_rig, right_model

from borrador.models.scripted import ScriptedModel, ScriptedTarget
from borrador.models.target import BestTokens
from borrador.verify.answers import AnswerStep, greedy_cases
from borrador.verify.logits import COMPARISONS, LogitStep
from borrador.verify.rig import Rig


def run(rig: Rig, *others: Rig) -> LogitStep:
    greedy = AnswerStep("greedy answers", greedy_cases(PROMPTS, EXTENT), EXTENT)
    greedy.run(make_rig())
    step = LogitStep("logits", greedy, EXTENT)
    for one in (rig, *others):
        step.run(one)
    return step


def test_a_right_target_passes_in_every_way() -> None:
    report = run(make_rig(threads=2), make_rig(threads=1)).report()
    assert report.passed
    ways = len(COMPARISONS)
    assert report.figures == {
        "rows": 2 * EXTENT.texts * ways * EXTENT.tail,
        "vocabulary": VOCABULARY,
        "ways": list(COMPARISONS),
    }


@pytest.mark.parametrize(
    ("model", "way"),
    [
        (WrongModel(amount=1e-6), "prefill in one pass"),
        (WrongModel(amount=1e-6, trees_only=True), "verification of trees"),
        (WrongModel(amount=1e-6, least_rows=30), "prefill in one pass"),
        (ForgetfulModel(), "verification with refused tokens"),
    ],
    ids=["several rows", "trees", "many rows", "refused tokens stay"],
)
def test_the_way_that_gives_other_bits_is_named(model: ScriptedModel, way: str) -> None:
    finding = run(make_rig(model)).report().finding
    assert finding is not None
    assert finding.as_json()["where"] == f"ab, {way}, threads 1"


def test_a_difference_is_told_with_position_token_and_both_logits() -> None:
    step = run(make_rig(threads=2), make_rig(WrongModel(amount=0.5, least_rows=1), threads=1))
    finding = step.report().finding
    assert finding is not None
    found = finding.as_json()
    text = step._texts[0]
    row = right_model().logits_after(text.tokens[: found["position"]])
    assert found["where"] == "ab, plain passes, threads 1"
    assert found["position"] == len(text.tokens) - text.tail + 1
    assert found["expected"] == {"token": 3, "text": "d", "logit": float(row[3])}
    assert found["found"] == {"token": 3, "text": "d", "logit": float(row[3] + np.float32(0.5))}


def swap_ids(best: BestTokens) -> None:
    best.ids[:, [1, 2]] = best.ids[:, [2, 1]]


def change_logits(best: BestTokens) -> None:
    best.logits[:, 3] = np.nextafter(best.logits[:, 3], np.float32(np.inf))


@pytest.mark.parametrize("damage", [swap_ids, change_logits])
def test_most_likely_tokens_that_are_not_those_of_the_logits_are_found(damage: Callable[[BestTokens], None]) -> None:
    class Model(ScriptedModel):
        def open(self, context_length: int) -> ScriptedTarget:
            return Target(self, context_length)

    class Target(ScriptedTarget):
        def best(self, *arguments: Any, **options: Any) -> BestTokens:
            best = super().best(*arguments, **options)
            if best.ids.shape[1] > 3:
                damage(best)
            return best

    finding = run(make_rig(Model(VOCABULARY, seed=17, memory=1, sharpness=3.0))).report().finding
    assert finding is not None
    found = finding.as_json()
    assert "verification by most likely tokens" in found["where"]
    assert (found["expected"]["token"] != found["found"]["token"]) == (damage is swap_ids)
    assert (found["expected"]["logit"] != found["found"]["logit"]) == (damage is change_logits)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_logits_that_are_no_numbers_are_a_difference_and_no_crash(value: float) -> None:
    finding = run(make_rig(WrongModel(amount=value))).report().finding
    assert finding is not None
    assert finding.as_json()["found"]["logit"] is None
