"""Decode the same prompts plainly and speculatively, one after the other, so that both meet the same machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol

from borrador.bench.prompts import BenchPrompt
from borrador.types import Completion, SamplingParams

WARM_UP_PROMPT = "Count from one to twenty, and then back again."
WARM_UP_TOKENS = 8


class Decoder(Protocol):
    """One way to answer a prompt."""

    def __call__(self, prompt: str, params: SamplingParams) -> Completion: ...


@dataclass(frozen=True, slots=True)
class Pair:
    """Both answers to one prompt."""

    prompt: BenchPrompt
    plain: Completion
    speculative: Completion

    @property
    def identical(self) -> bool:
        return self.plain.token_ids == self.speculative.token_ids

    @property
    def first_divergence(self) -> int | None:
        """Index of the first token that differs (the length of the shorter answer where one ends early)."""
        if self.identical:
            return None
        both = zip(self.plain.token_ids, self.speculative.token_ids, strict=False)
        shorter = min(len(self.plain.token_ids), len(self.speculative.token_ids))
        return next((index for index, (left, right) in enumerate(both) if left != right), shorter)


def run_pairs(
    plain: Decoder, speculative: Decoder, prompts: Iterable[BenchPrompt], params: SamplingParams
) -> Iterator[Pair]:
    """Answer each prompt in both ways. Which goes first alternates, so that a machine that slows down favours neither.

    Both are warmed up with a few tokens for another prompt, which are not measured.
    """
    brief = replace(params, max_tokens=min(params.max_tokens, WARM_UP_TOKENS))
    plain(WARM_UP_PROMPT, brief)
    speculative(WARM_UP_PROMPT, brief)
    for index, prompt in enumerate(prompts):
        if index % 2 == 0:
            plain_answer = plain(prompt.text, params)
            speculative_answer = speculative(prompt.text, params)
        else:
            speculative_answer = speculative(prompt.text, params)
            plain_answer = plain(prompt.text, params)
        yield Pair(prompt, plain_answer, speculative_answer)
