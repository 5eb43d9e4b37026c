from __future__ import annotations

from borrador.bench.prompts import BenchPrompt
from borrador.bench.runner import WARM_UP_PROMPT, Pair, run_pairs
from borrador.types import Completion, SamplingParams

PROMPTS = tuple(BenchPrompt(f"qa-{number}", "qa", f"question {number}") for number in range(3))


def completion(*token_ids: int) -> Completion:
    return Completion(text="", token_ids=token_ids, origins=(), finish_reason="stop")


def test_order_alternates_after_a_short_warm_up() -> None:
    calls: list[tuple[str, str, int]] = []

    def decoder(name: str) -> object:
        def decode(prompt: str, params: SamplingParams) -> Completion:
            calls.append((name, prompt, params.max_tokens))
            return completion(1)

        return decode

    pairs = list(run_pairs(decoder("plain"), decoder("spec"), PROMPTS, SamplingParams(max_tokens=32)))  # type: ignore[arg-type]
    assert [pair.prompt for pair in pairs] == list(PROMPTS)
    assert calls == [
        ("plain", WARM_UP_PROMPT, 8),
        ("spec", WARM_UP_PROMPT, 8),
        ("plain", "question 0", 32),
        ("spec", "question 0", 32),
        ("spec", "question 1", 32),
        ("plain", "question 1", 32),
        ("plain", "question 2", 32),
        ("spec", "question 2", 32),
    ]


def test_divergence_is_the_first_token_that_differs() -> None:
    assert Pair(PROMPTS[0], completion(1, 2, 3), completion(1, 2, 3)).first_divergence is None
    assert Pair(PROMPTS[0], completion(1, 2, 3), completion(1, 5, 3)).first_divergence == 1


def test_answer_that_ends_early_diverges_at_its_end() -> None:
    pair = Pair(PROMPTS[0], completion(1, 2, 3), completion(1, 2))
    assert (pair.identical, pair.first_divergence) == (False, 2)
