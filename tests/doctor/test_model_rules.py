from __future__ import annotations

from dataclasses import replace

import pytest
from tests.doctor.machines import DRAFT, GOOD, TARGET, TRIAL, machine

from borrador.doctor.advice import advise, find_obstacles
from borrador.doctor.facts import Facts, ModelFile


def _with(*models: ModelFile) -> Facts:
    return replace(GOOD, models=models)


def test_without_a_model_one_is_to_be_fetched() -> None:
    (advice,) = advise(_with())
    assert (advice.topic, "borrador pull smollm2-135m (98 MB)" in advice.remedy) == ("no-model", True)


def test_a_file_that_is_too_short_is_to_be_replaced_and_is_no_draft_model() -> None:
    damaged, draft = advise(_with(replace(DRAFT, whole=False), TARGET))
    assert (damaged.topic, damaged.remedy) == ("damaged-model", "Replace it: borrador pull qwen2.5-coder-0.5b")
    assert draft.topic == "draft-model"


def test_models_larger_than_free_memory_are_named_with_their_sizes() -> None:
    (advice,) = advise(machine(memory={"free_bytes": 10**9}))
    assert advice.topic == "memory"
    assert advice.finding == "qwen2.5-coder-1.5b (1.1 GB) would not fit into the 1.0 GB of memory that are free"


def test_a_large_model_alone_wants_a_draft_model_and_a_small_one_does_not() -> None:
    (advice,) = advise(_with(TARGET))
    assert (advice.topic, "borrador pull qwen2.5-coder-0.5b" in advice.remedy) == ("draft-model", True)
    assert advise(_with(DRAFT)) == []


@pytest.mark.parametrize(
    ("models", "command"),
    [
        ((DRAFT, replace(TARGET, planned=())), "borrador plan -m qwen2.5-coder-1.5b -d auto,qwen2.5-coder-0.5b"),
        ((replace(DRAFT, planned=()),), "borrador plan -m qwen2.5-coder-0.5b"),
    ],
)
def test_a_model_without_a_plan_is_to_be_planned_with_the_drafters_that_are_there(
    models: tuple[ModelFile, ...], command: str
) -> None:
    (advice,) = advise(_with(*models))
    assert (advice.topic, advice.remedy) == ("plan", f"Run: {command}")


def test_the_plan_of_the_model_that_was_tried_counts() -> None:
    facts = _with(replace(DRAFT, planned=()), TARGET)
    assert advise(facts) == []
    (advice,) = advise(replace(facts, trial=replace(TRIAL, model=DRAFT.name)))
    assert advice.topic == "plan"


def test_profiles_that_cannot_be_written_are_named() -> None:
    closed = replace(GOOD.folders[0], writable=False)
    (advice,) = advise(replace(GOOD, folders=(closed,)))
    assert (advice.topic, "/home/profiles" in advice.finding) == ("profiles", True)


def test_an_instruction_set_that_is_not_here_stands_in_the_way() -> None:
    assert find_obstacles(GOOD) == []
    facts = machine(processor={"forced": "neon"})
    (obstacle,) = find_obstacles(facts)
    assert obstacle.finding == "BORRADOR_ISA must be one of portable, avx2, avx512vnni here, got 'neon'"
    assert advise(facts) == []


def test_a_model_that_cannot_be_loaded_stands_in_the_way() -> None:
    (obstacle,) = find_obstacles(replace(GOOD, obstacle="it needs 9 GB"))
    assert obstacle.finding == "it needs 9 GB"
