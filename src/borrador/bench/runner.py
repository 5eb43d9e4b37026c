"""Decode the same prompts plainly and speculatively, in turns of a round each, so that both meet the same machine."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from typing import Protocol

from borrador.bench.prompts import BenchPrompt
from borrador.bench.runs import Pair, Run
from borrador.types import SamplingParams

WARM_UP_PROMPT = "Count from one to twenty, and then back again."
WARM_UP_TOKENS = 8
Answering = Generator[int, None, Run]  # an answer while it is written: after every round, how many tokens it has


class Decoder(Protocol):
    """One way to answer a prompt."""

    def __call__(self, prompt: BenchPrompt, params: SamplingParams, /) -> Answering: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Ways:
    """The two that are compared."""

    plain: Decoder
    speculative: Decoder

    def warm_up(self, params: SamplingParams) -> None:
        """Let both write a few tokens for a prompt of no benchmark, which are not measured."""
        brief = replace(params, max_tokens=min(params.max_tokens, WARM_UP_TOKENS))
        for decode in (self.plain, self.speculative):
            in_step([decode(BenchPrompt("warm-up", "warm-up", WARM_UP_PROMPT), brief)])

    def run(self, prompts: Sequence[BenchPrompt], params: SamplingParams, repeats: int = 1) -> Iterator[Pair]:
        """Answer all prompts, and then all again. Both ways write a prompt's answer at the same time, see `in_step`.
        Which of them begins alternates, from prompt to prompt and for each prompt from time to time."""
        for repeat in range(repeats):
            for index, prompt in enumerate(prompts):
                yield self._answer(prompt, params, repeat, plain_first=(index + repeat) % 2 == 0)

    def _answer(self, prompt: BenchPrompt, params: SamplingParams, repeat: int, *, plain_first: bool) -> Pair:
        order = (self.plain, self.speculative) if plain_first else (self.speculative, self.plain)
        first, second = in_step([decode(prompt, params) for decode in order])
        plain, speculative = (first, second) if plain_first else (second, first)
        return Pair(
            prompt=prompt.id,
            task=prompt.task,
            repeat=repeat,
            plain_first=plain_first,
            plain=plain,
            speculative=speculative,
        )


def in_step(answers: Sequence[Answering]) -> list[Run]:
    """Write these answers to their ends, round by round: the next round is always that of the answer with the fewest
    tokens, of the first one where several have as few. What slows the machine for a moment meets all of them."""
    runs: dict[int, Run] = {}
    tokens = dict.fromkeys(range(len(answers)), 0)
    with ExitStack() as stack:
        for answer in answers:
            stack.enter_context(closing(answer))
        while tokens:
            index = min(tokens, key=tokens.__getitem__)
            try:
                tokens[index] = next(answers[index])
            except StopIteration as end:
                runs[index] = end.value
                del tokens[index]
    return [runs[index] for index in range(len(answers))]
