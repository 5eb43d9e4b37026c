from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from tests.verify.scripted import EXTENT, PROMPTS, ForgetfulModel, WrongModel, make_rig, right_model

from borrador.bench.prompts import BenchPrompt
from borrador.models.scripted import ScriptedModel
from borrador.sampling import rules
from borrador.sampling.acceptance import accept_choices
from borrador.sampling.shaping import History
from borrador.types import SamplingParams
from borrador.verify.answers import AnswerStep, Case, first_divergence, greedy_cases, rotate, seeded_cases
from borrador.verify.rig import Setup, Written


def greedy() -> AnswerStep:
    return AnswerStep("greedy answers", greedy_cases(PROMPTS, EXTENT), EXTENT)


def seeded() -> AnswerStep:
    return AnswerStep("seeded answers", seeded_cases(PROMPTS * 10, EXTENT), EXTENT)


@pytest.mark.parametrize("make", [greedy, seeded])
def test_a_right_target_passes_with_every_drafter_and_all_of_them_draft(make: Any) -> None:
    step = make()
    step.run(make_rig(threads=2))
    step.run(make_rig(threads=1))
    report = step.report()
    assert report.passed
    drafters = report.figures["drafters"]
    assert set(drafters) == {"none", "all drafters", "lookup", "small", "rehearsed chain", "rehearsed tree"}
    assert report.figures["answers"] == sum(tally["answers"] for tally in drafters.values())
    for name in ("lookup", "small", "rehearsed chain", "rehearsed tree"):
        assert drafters[name]["drafted"] >= drafters[name]["accepted"] > 0
    assert drafters["none"]["drafted"] == 0
    assert all("all drafters" in remark for remark in report.remarks)  # scripted passes may be too dear for drafts


def test_another_token_is_found_with_its_place_and_both_logits() -> None:
    step = greedy()
    step.run(make_rig(WrongModel(amount=100.0)))
    finding = step.report().finding
    assert finding is not None
    found = finding.as_json()
    plain = step.plain["ab"]
    index = found["position"] - len(plain.prompt)
    row = right_model().logits_after([*plain.prompt, *plain.tokens[:index]])
    assert found["where"].startswith("ab, ")
    assert found["expected"] == {
        "token": plain.tokens[index],
        "text": "abcdefghijklmno"[plain.tokens[index]],
        "logit": pytest.approx(float(row.max())),
    }
    assert found["found"] == {"token": 3, "text": "d", "logit": pytest.approx(float(row[3]) + 100)}
    assert f"position {found['position']} is " in finding.describe()
    assert 'and here 3 "d" (logit' in finding.describe()


def test_the_same_tokens_from_other_logits_are_found_too() -> None:
    step = seeded()
    step.run(make_rig(WrongModel(amount=1e-6)))
    finding = step.report().finding
    assert finding is not None
    found = finding.as_json()
    assert found["expected"]["token"] == found["found"]["token"]


@pytest.mark.parametrize(
    ("change", "expected", "found"),
    [
        (lambda answer: replace(answer, text=answer.text[:-1]), "the end (length)", "the end (length)"),
        (lambda answer: replace(answer, finish_reason="stop"), "the end (length)", "the end (stop)"),
        (lambda answer: replace(answer, choices=answer.choices[:-1]), "(logit ", "nothing"),
    ],
    ids=["text", "reason", "length"],
)
def test_any_difference_between_answers_is_found(
    change: Callable[[Written], Written], expected: str, found: str
) -> None:
    rig = make_rig()
    answer = rig.write("ab", SamplingParams(max_tokens=6))
    changed = change(answer)
    assert first_divergence(answer, rig.write("ab", SamplingParams(max_tokens=6)), "here", rig) is None
    there, back = first_divergence(answer, changed, "here", rig), first_divergence(changed, answer, "here", rig)
    assert there is not None
    assert back is not None
    assert (there.expected, there.found) == (back.found, back.expected)
    assert there.position == len(answer.prompt) + min(len(answer.choices), len(changed.choices))
    assert expected in there.expected.describe()
    assert found in there.found.describe()


@pytest.mark.parametrize(
    ("model", "drafter"),
    [
        (WrongModel(amount=100.0, trees_only=True), "rehearsed tree"),
        (WrongModel(amount=100.0, least_rows=6), ""),
        (ForgetfulModel(), ""),
    ],
    ids=["trees", "long drafts", "refused tokens stay"],
)
def test_targets_that_are_wrong_now_and_then_are_found(model: ScriptedModel, drafter: str) -> None:
    prompts = [BenchPrompt("short", "letters", "ab")]
    step = AnswerStep("greedy answers", greedy_cases(prompts, EXTENT), EXTENT)
    step.run(make_rig(model))
    finding = step.report().finding
    assert finding is not None
    assert drafter in finding.describe()


def test_a_difference_between_numbers_of_threads_is_found() -> None:
    step = greedy()
    step.run(make_rig(threads=4))
    assert step.report().passed
    step.run(make_rig(WrongModel(amount=1.0, least_rows=1), threads=3))
    finding = step.report().finding
    assert finding is not None
    assert "ab, plain decoding, threads 3: position" in finding.describe()


def test_noise_of_another_position_is_found_by_seeded_answers_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def accept(self: Any, logits: Any, draft: Any, context: Sequence[int]) -> Any:
        history = History(context)  # of the first row, for all rows
        return accept_choices(draft.tokens, draft.parents, lambda row: self._shaper.choice(logits[row], history))

    monkeypatch.setattr(rules.ChoiceRule, "accept", accept)
    steps = greedy(), seeded()
    for step in steps:
        step.run(make_rig())
    assert [step.report().finding is None for step in steps] == [True, False]


def test_nothing_is_compared_after_the_first_difference() -> None:
    step = greedy()
    step.run(make_rig(WrongModel(amount=100.0)))
    before = step.report()
    step.run(make_rig())
    assert step.report() == before


def test_a_drafter_that_never_proposes_is_named() -> None:
    step = AnswerStep("greedy answers", [Case("once", "abcdefgh", SamplingParams(max_tokens=1))], EXTENT)
    step.run(make_rig(drafters=[make_rig().parts.drafters[0]]))
    report = step.report()
    assert report.passed
    assert "greedy answers: lookup never proposed anything, and so was not checked" in report.remarks


def test_every_kind_of_sampling_occurs_and_seeds_differ() -> None:
    cases = seeded_cases(PROMPTS, EXTENT)
    kinds = {(case.params.temperature, case.params.top_p, case.params.penalises) for case in cases}
    assert kinds == set(itertools.product((0.7, 1.0), (1.0, 0.9), (False, True)))
    assert len({case.params.seed for case in cases}) == len({case.name for case in cases}) == len(cases)


@pytest.mark.parametrize(("cases", "setups", "ways"), [(3, 7, 2), (8, 3, 2), (2, 5, 9), (1, 1, 1)])
def test_every_setup_occurs_and_no_case_repeats_one(cases: int, setups: int, ways: int) -> None:
    some = [Case(str(number), "", SamplingParams()) for number in range(cases)]
    pairs = list(rotate(some, [Setup(str(number), number) for number in range(setups)], ways))
    assert len({setup for _, setup in pairs}) == setups
    assert len(set(pairs)) == len(pairs)
    for case in some:
        assert sum(pair[0] is case for pair in pairs) >= min(ways, setups)
