from __future__ import annotations

from dataclasses import replace

import pytest
from tests.verify.scripted import EXTENT, PROMPTS, WrongModel, make_parts, right_model

from borrador.bench.prompts import BenchPrompt
from borrador.engine.loading import Parts
from borrador.errors import ContextLengthError
from borrador.models.scripted import ScriptedModel
from borrador.verify.report import Report
from borrador.verify.suite import LEAST_CONTEXT, spread, verify

STEPS = ["greedy answers", "seeded answers", "logits", "sampling law"]


def run(*models: ScriptedModel, break_residual: bool = False) -> tuple[Report, list[str]]:
    """Verify with one model for each number of threads."""
    notices: list[str] = []
    report = verify(
        lambda threads: make_parts(models[threads - 1]),
        range(1, len(models) + 1),
        PROMPTS,
        EXTENT,
        notice=notices.append,
        break_residual=break_residual,
    )
    return report, notices


def test_all_steps_are_taken_with_each_number_of_threads_and_models_are_closed() -> None:
    models = [right_model(), right_model()]
    report, notices = run(*models)
    assert report.passed
    assert report.failed is None
    assert [step.name for step in report.steps] == STEPS
    assert notices == [
        f"step {place} of 4: {name}, threads {threads}" for threads in (1, 2) for place, name in enumerate(STEPS, 1)
    ]
    assert all(model.closed for model in models)


def test_later_steps_are_taken_whatever_the_first_ones_found() -> None:
    report, _ = run(WrongModel(amount=100.0))
    assert [step.finding is None for step in report.steps] == [False, False, False, True]
    assert report.failed is report.steps[0]
    assert not report.passed


def test_a_rule_that_is_broken_on_purpose_fails_the_last_step_alone() -> None:
    report, _ = run(right_model(), break_residual=True)
    assert [step.passed for step in report.steps] == [True, True, True, False]
    assert report.failed is report.steps[3]


def test_a_prompt_that_is_too_long_is_refused_and_models_are_closed() -> None:
    model = right_model()
    parts = make_parts(model)
    with pytest.raises(ContextLengthError, match="prompt must be shorter than the context of 256 tokens, long has 256"):
        verify(lambda _: parts, [1], [BenchPrompt("long", "letters", "a" * 256)], EXTENT, notice=lambda _: None)
    assert model.closed


def test_a_context_without_room_for_the_tables_is_refused() -> None:
    def open_parts(_threads: int) -> Parts:
        return replace(make_parts(), context_length=LEAST_CONTEXT - 1)

    with pytest.raises(
        ContextLengthError, match=f"at least {LEAST_CONTEXT} tokens, this model has {LEAST_CONTEXT - 1}"
    ):
        verify(open_parts, [1], PROMPTS, EXTENT, notice=lambda _: None)


@pytest.mark.parametrize(("count", "taken"), [(1, [0]), (2, [0, 9]), (4, [0, 3, 6, 9]), (99, [*range(10)])])
def test_prompts_are_taken_from_all_over_the_file(count: int, taken: list[int]) -> None:
    prompts = [BenchPrompt(str(number), "", "") for number in range(10)]
    assert [int(prompt.id) for prompt in spread(prompts, count)] == taken
