"""One set of models, set up in all the ways of drafting that are compared."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from types import TracebackType

from borrador.bench.prompts import BenchPrompt
from borrador.bench.runner import WARM_UP_PROMPT, WARM_UP_TOKENS
from borrador.bench.trace import Trace
from borrador.draft.protocol import Drafter
from borrador.engine.costs import RowCosts
from borrador.engine.llm import LLM
from borrador.engine.loading import Parts
from borrador.engine.measuring import measure_row_costs
from borrador.engine.profile import Profile
from borrador.sampling.shaping import Shaper
from borrador.types import Message, RoundRecord, SamplingParams

FREE_SHARE = 0.01  # of a plain pass: drafters whose tokens take less cost nothing


@dataclass(frozen=True, slots=True)
class Way:
    """A way of drafting.

    Attributes:
        drafters: by name; none is plain decoding.
        by_costs: measured costs choose what is verified; otherwise a fixed length is.
    """

    drafters: tuple[str, ...] = ()
    by_costs: bool = False

    def describe(self) -> str:
        names = "+".join(self.drafters) or "none"
        return f"{names} by costs" if self.by_costs else names


PLAIN = Way()


class Lineup:
    """Answers the same prompts in different ways.

    Args:
        parts: the target and its drafters; closed with the lineup.
        profile: told at the end what the choice by costs with all drafters has learnt; None keeps nothing.
    """

    def __init__(self, parts: Parts, profile: Profile | None = None) -> None:
        self._parts = parts
        with ExitStack() as on_failure:
            on_failure.callback(parts.close)
            self.costs: RowCosts = measure_row_costs(parts.model.open(parts.context_length))
            most = FREE_SHARE * self.costs(1)
            self._costly = [drafter for drafter in parts.drafters if drafter.price().token_s > most]
            self._llms = {way: self._assemble(way, profile) for way in self.ways}
            on_failure.pop_all()

    @property
    def ways(self) -> tuple[Way, ...]:
        """Every drafter alone, then the choice by costs: with those that cost nothing, if others do, and with all."""
        names = tuple(drafter.name for drafter in self._parts.drafters)
        free = tuple(name for name in names if name not in {drafter.name for drafter in self._costly})
        choices = [free, names] if free and len(free) < len(names) else [names]
        return (*(Way((name,)) for name in names), *(Way(choice, by_costs=True) for choice in choices))

    @property
    def context_length(self) -> int:
        """The most tokens of prompt and answer together."""
        return self._parts.context_length

    def prompt_tokens(self, prompt: BenchPrompt) -> int:
        return len(self._llms[self.ways[-1]].tokenize(_messages(prompt.text)))

    def warm_up(self, params: SamplingParams) -> None:
        """Let every way write a few tokens, which are not measured."""
        brief = replace(params, max_tokens=min(params.max_tokens, WARM_UP_TOKENS))
        prompt = BenchPrompt("warm-up", "warm-up", WARM_UP_PROMPT)
        for way in (PLAIN, *self.ways):
            self.answer(way, prompt, brief, draft_tokens=2)

    def answer(self, way: Way, prompt: BenchPrompt, params: SamplingParams, draft_tokens: int) -> Trace:
        """Answer a prompt that no drafter has read.

        Args:
            way: one of `ways`, or `PLAIN`.
            prompt: asked as the user's first message.
            params: greedy.
            draft_tokens: drafted each round, where costs do not choose.
        """
        llm = self._llms[self.ways[-1] if way == PLAIN else way]
        length = None if way.by_costs else draft_tokens
        self._forget(llm, params)
        records: list[RoundRecord] = []
        token_ids: list[int] = []
        with llm.stream(_messages(prompt.text), params, speculate=way != PLAIN, draft_tokens=length) as stream:
            for event in stream:
                token_ids += event.token_ids
                if event.record is not None:
                    records.append(event.record)
            prompt_tokens = stream.stats.prompt_tokens
        return Trace(prompt, prompt_tokens, tuple(token_ids), tuple(records[1:]))

    def close(self) -> None:
        """Tell the profile what was learnt, and free models and caches. Safe to call twice."""
        self._llms[self.ways[-1]].close()

    def __enter__(self) -> Lineup:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _assemble(self, way: Way, profile: Profile | None) -> LLM:
        drafters: Sequence[Drafter] = [each for each in self._parts.drafters if each.name in way.drafters]
        own = replace(self._parts, drafters=drafters, profile=profile if way == self.ways[-1] else None)
        return own.assemble(None if way.by_costs else 0)

    def _forget(self, llm: LLM, params: SamplingParams) -> None:
        """Let drafters that read read another text: if this prompt is the last one again, it would cost too little."""
        text = llm.tokenize(WARM_UP_PROMPT)
        for drafter in self._costly:
            session = drafter.open(Shaper(params, prompt_length=len(text)))
            try:
                session.propose(text, 1)
            finally:
                session.close()


def _messages(question: str) -> Sequence[Message]:
    return [{"role": "user", "content": question}]
