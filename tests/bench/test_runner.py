from __future__ import annotations

from tests.bench.records import make_run

from borrador.bench.prompts import BenchPrompt
from borrador.bench.runner import WARM_UP_PROMPT, Decoder, Ways
from borrador.bench.runs import Run
from borrador.types import SamplingParams

PROMPTS = tuple(BenchPrompt(f"qa-{number}", "qa", f"question {number}") for number in range(3))
PARAMS = SamplingParams(max_tokens=32)
Call = tuple[str, str, int]


def decoder(name: str, calls: list[Call], passes: int) -> Decoder:
    def decode(prompt: BenchPrompt, params: SamplingParams, /) -> Run:
        calls.append((name, prompt.text, params.max_tokens))
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
