"""Decode the same prompts plainly and speculatively, one after the other, so that both meet the same machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from borrador.bench.prompts import BenchPrompt
from borrador.bench.runs import Pair, Run
from borrador.types import SamplingParams

WARM_UP_PROMPT = "Count from one to twenty, and then back again."
WARM_UP_TOKENS = 8


class Decoder(Protocol):
    """One way to answer a prompt."""

    def __call__(self, prompt: BenchPrompt, params: SamplingParams, /) -> Run: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Ways:
    """The two that are compared."""

    plain: Decoder
    speculative: Decoder

    def warm_up(self, params: SamplingParams) -> None:
        """Let both write a few tokens for a prompt of no benchmark, which are not measured."""
        brief = replace(params, max_tokens=min(params.max_tokens, WARM_UP_TOKENS))
        for decode in (self.plain, self.speculative):
            decode(BenchPrompt("warm-up", "warm-up", WARM_UP_PROMPT), brief)

    def run(self, prompts: Sequence[BenchPrompt], params: SamplingParams, repeats: int = 1) -> Iterator[Pair]:
        """Answer all prompts, and then all again. Which way goes first alternates, from prompt to prompt and for each
        prompt from time to time, so that a machine that slows down favours neither."""
        for repeat in range(repeats):
            for index, prompt in enumerate(prompts):
                yield self._answer(prompt, params, repeat, plain_first=(index + repeat) % 2 == 0)

    def _answer(self, prompt: BenchPrompt, params: SamplingParams, repeat: int, *, plain_first: bool) -> Pair:
        order = (self.plain, self.speculative) if plain_first else (self.speculative, self.plain)
        first, second = (decode(prompt, params) for decode in order)
        plain, speculative = (first, second) if plain_first else (second, first)
        return Pair(
            prompt=prompt.id,
            task=prompt.task,
            repeat=repeat,
            plain_first=plain_first,
            plain=plain,
            speculative=speculative,
        )
