"""A model that answers benchmark prompts in both ways, and what its drafters know when they meet one."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from borrador.bench.files import as_name
from borrador.bench.prompts import BenchPrompt, Halves, Start
from borrador.bench.runner import Answering, Decoder, Ways, in_step
from borrador.bench.runs import Run
from borrador.draft.history import History
from borrador.draft.suffix import SuffixDrafter
from borrador.engine.llm import LLM
from borrador.engine.stream import completion_of
from borrador.types import GenerationEvent, Message, SamplingParams


class Contestant:
    """Answers prompts plainly and speculatively, each as if nothing of it had been read before.

    Before every run the caches of target and draft models are emptied: the same prompt again would find itself there,
    and times end to end would not compare like with like. What drafters have learnt besides is for `start` to say, see
    `Settings.start`. What passes cost is a fact of the machine, and never forgotten. Both ways use the same weights in
    the same memory, and a sequence each, so that they can write at the same time.

    Args:
        llm: that answers; closed by its owner.
        start: what drafters know when they meet a prompt.
    """

    def __init__(self, llm: LLM, start: Start = "carried") -> None:
        self._llm = llm
        self._plain = beside(llm)
        self._start = start
        self._known: Mapping[str, Any] | None = {} if start == "cold" else None

    @property
    def ways(self) -> Ways:
        return Ways(plain=self._decoder(speculate=False), speculative=self._decoder(speculate=True))

    def split(self, prompts: Sequence[BenchPrompt]) -> Halves:
        """Prompts to learn from, half of each task where the start is warm and else none; and those to measure.

        Raises:
            UsageError: the start is warm, and there is but one.
        """
        if self._start != "warm":
            return Halves((), tuple(prompts))
        return Halves.of(prompts, "a warm start")

    def learn(
        self,
        prompts: Sequence[BenchPrompt],
        params: SamplingParams,
        notice: Callable[[BenchPrompt], None] = lambda _prompt: None,
    ) -> None:
        """For a warm start, answer prompts that will not be measured; nothing is learnt after that.

        Args:
            prompts: whose answers drafters may propose from; none where the start is not warm.
            params: of the answers.
            notice: told each prompt before it is answered.
        """
        if self._start != "warm":
            return
        decode = self._decoder(speculate=True)
        with TemporaryDirectory() as folder:
            history = History("bench", self._llm.tokenizer.fingerprint(), folder=Path(folder))
            for drafter in self._llm.planner.drafters.values():
                if isinstance(drafter, SuffixDrafter):
                    drafter.use(history)
            for prompt in prompts:
                notice(prompt)
                in_step([decode(prompt, params)])
            history.freeze()
        self._known = self._llm.planner.learnt

    def _decoder(self, *, speculate: bool) -> Decoder:
        llm = self._llm if speculate else self._plain

        def decode(prompt: BenchPrompt, params: SamplingParams, /) -> Answering:
            llm.forget_texts()
            if speculate and self._known is not None:
                llm.planner.restore(self._known)
            messages: Sequence[Message] = [{"role": "user", "content": prompt.text}]
            events: list[GenerationEvent] = []
            tokens = 0
            with llm.stream(messages, params, speculate=speculate) as stream:
                for event in stream:
                    events.append(event)
                    tokens += len(event.token_ids)
                    if event.record is not None:
                        yield tokens
                answer = completion_of(events, params, stream.stats)
            return Run.of(answer, [event.record for event in events if event.record is not None], self._names)

        return decode

    def _names(self, joined: str) -> list[str]:
        """Those who put a draft together, draft models by the names of their files, in which `+` joins nothing."""
        known = "|".join(re.escape(name) for name in sorted(self._llm.planner.drafters, key=len, reverse=True))
        return [short_name(name) for name in re.findall(rf"(?:^|\+)({known}|[^+]+)(?=\+|\Z)", joined)]


def beside(llm: LLM) -> LLM:
    """Another one with the same weights and no drafters, which can write while this one does; closed with it."""
    return LLM(llm.model, llm.tokenizer, llm.template, context_length=llm.context_length)


def short_name(drafter: str) -> str:
    """A drafter's name without the folders of a path, which are nobody's business."""
    return as_name(Path(drafter).name) if drafter.endswith(".gguf") else drafter
