from __future__ import annotations

from dataclasses import replace

import pytest
from tests.bench.records import PAIRS, SETTINGS, make_pair, make_record

from borrador.bench.compare import Difference, compare
from borrador.bench.record import ModelFile
from borrador.errors import UsageError

A = make_record()


def test_record_compared_with_itself_has_not_changed() -> None:
    found = compare(A, A)
    change = found.change
    assert found.differences == ()
    for ratio in (change.plain, change.speculative, change.speedup):
        assert ratio is not None
        assert (ratio.median, ratio.interval) == (1.0, (1.0, 1.0))
    assert (found.prompts, found.identical, found.different) == (("qa-1", "qa-2", "code-1"), 3, None)


def test_speeds_are_compared_prompt_by_prompt() -> None:
    pairs = tuple(
        make_pair(prompt, task, speedup)
        for prompt, task, speedup in (("code-1", "code", 6.1), ("qa-1", "qa", 2.1), ("qa-2", "qa", 1.55))
    )
    change = compare(A, make_record(pairs)).change
    assert change.plain is not None
    assert change.speculative is not None
    assert change.plain.median == pytest.approx(1.0)
    assert change.speculative.median == pytest.approx(2.0)
    assert change.speculative.interval is not None
    assert list(change.speculative.interval) == pytest.approx([1.0, 2.0])


def test_only_shared_prompts_count_and_the_others_are_named() -> None:
    other = make_record((*PAIRS[:2], make_pair("qa-9", "qa", 9.0)))
    found = compare(A, other)
    assert (found.prompts, found.only_a, found.only_b) == (("qa-1", "qa-2"), ("code-1",), ("qa-9",))
    assert found.a.speedup == pytest.approx(1.6 / sum(0.4 / speedup for speedup in (1.0, 1.1, 1.5, 1.6)))
    assert found.b.speedup == pytest.approx(0.8 / (0.4 + 0.4 / 1.5))


def test_records_without_a_common_prompt_cannot_be_compared() -> None:
    with pytest.raises(UsageError, match="none in common"):
        compare(A, make_record((make_pair("qa-9", "qa", 1.0),)))


def test_answers_that_differ_are_counted_and_the_first_is_named() -> None:
    pairs = (make_pair("qa-1", "qa", 1.0), make_pair("qa-2", "qa", 1.0, token_ids=(1, 2)))
    found = compare(A, make_record(pairs))
    assert (found.identical, found.different) == (1, "qa-2")


def test_draws_are_not_compared() -> None:
    found = compare(A, make_record(PAIRS, replace(SETTINGS, temperature=1.0)))
    assert (found.identical, found.different) == (None, None)


def test_what_differs_is_named_with_both_values() -> None:
    other = replace(
        A,
        machine=replace(A.machine, cpu="Another"),
        model=ModelFile(name="target.gguf", bytes=1000, sha256="f" * 64),
        draft_models=(),
        settings=replace(SETTINGS, draft=("suffix",), draft_tokens=4),
    )
    assert compare(A, other).differences == (
        Difference("model", "target.gguf 000000000000", "target.gguf ffffffffffff"),
        Difference("draft_models", "draft.gguf 000000000000", "none"),
        Difference("machine.cpu", "A Processor", "Another"),
        Difference("settings.draft", "suffix, draft.gguf", "suffix"),
        Difference("settings.draft_tokens", "none", "4"),
    )
