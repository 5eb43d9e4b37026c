from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.bench.records import make_run

from borrador.bench.prompts import BenchPrompt
from borrador.bench.runner import WARM_UP_PROMPT, Answering, Decoder, Ways, in_step
from borrador.errors import ModelError
from borrador.types import SamplingParams

PROMPTS = tuple(BenchPrompt(f"qa-{number}", "qa", f"question {number}") for number in range(3))
PARAMS = SamplingParams(max_tokens=32)
Call = tuple[str, str, int]


def decoder(name: str, calls: list[Call], passes: int) -> Decoder:
    def decode(prompt: BenchPrompt, params: SamplingParams, /) -> Answering:
        calls.append((name, prompt.text, params.max_tokens))
        yield 1
        return make_run(1.0, passes)

    return decode


def ways(calls: list[Call]) -> Ways:
    return Ways(plain=decoder("plain", calls, 5), speculative=decoder("spec", calls, 3))


def test_which_way_goes_first_alternates_by_prompt_and_by_repeat() -> None:
    calls: list[Call] = []
    pairs = list(ways(calls).run(PROMPTS, PARAMS, repeats=2))
    assert [(pair.prompt, pair.repeat, pair.plain_first) for pair in pairs] == [
        ("qa-0", 0, True),
        ("qa-1", 0, False),
        ("qa-2", 0, True),
        ("qa-0", 1, False),
        ("qa-1", 1, True),
        ("qa-2", 1, False),
    ]
    assert calls[:4] == [
        ("plain", "question 0", 32),
        ("spec", "question 0", 32),
        ("spec", "question 1", 32),
        ("plain", "question 1", 32),
    ]
    assert {(pair.plain.passes, pair.speculative.passes) for pair in pairs} == {(5, 3)}


def test_both_ways_are_warmed_up_with_a_short_answer_to_another_prompt() -> None:
    calls: list[Call] = []
    ways(calls).warm_up(PARAMS)
    assert calls == [("plain", WARM_UP_PROMPT, 8), ("spec", WARM_UP_PROMPT, 8)]


def answering(name: str, rounds: Sequence[int], order: list[str]) -> Answering:
    """An answer whose rounds write so many tokens each."""
    tokens = 0
    try:
        for written in rounds:
            order.append(name)
            tokens += written
            yield tokens
    finally:
        order.append(f"{name} ends")
    return make_run(1.0, len(rounds))


def test_the_answer_with_fewer_tokens_is_next() -> None:
    order: list[str] = []
    plain, spec = in_step([answering("plain", [1] * 6, order), answering("spec", [1, 3, 2], order)])
    assert order == [
        "plain", "spec", "plain", "spec", "plain", "plain", "plain", "spec", "plain", "plain ends", "spec ends",
    ]  # fmt: skip
    assert (plain.passes, spec.passes) == (6, 3)


def test_an_answer_that_fails_ends_the_other_one_too() -> None:
    def fails() -> Answering:
        yield 1
        raise ModelError("its logits are not numbers")

    order: list[str] = []
    with pytest.raises(ModelError):
        in_step([answering("plain", [1] * 6, order), fails()])
    assert order == ["plain", "plain", "plain ends"]
