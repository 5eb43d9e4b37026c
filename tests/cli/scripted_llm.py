"""A language model that writes a fixed answer, so that the command line is tested without one.

`python -m tests.cli.scripted_llm [--slow] ARGUMENTS` is `borrador ARGUMENTS` with it, or for `verify` with the scripted
target of its own tests.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any

from tests.scripted import letter_tokenizer
from tests.verify.scripted import EXTENT, make_parts

from borrador.bench import start
from borrador.cli import bench, chat, entry, run, verify
from borrador.draft.protocol import Drafter
from borrador.types import (
    Completion,
    Draft,
    FinishReason,
    GenerationEvent,
    GenerationStats,
    Origin,
    RoundRecord,
    SamplingParams,
    TokenLogprobs,
    Verdict,
)

PIECES = ("<end>", "The", " capital", " is", " Rome", " Paris", ",", " of", " course", "é", "\n")
ANSWER = "The capital is Rome, of course"


def make_round(
    number: int, draft: Sequence[int], accepted: int, own: int, *, parents: tuple[int, ...] | None = None
) -> RoundRecord:
    """A round in which the first `accepted` tokens of a chain were accepted and the target then wrote `own`."""
    committed = (*draft[:accepted], own)
    bonus = bool(draft) and accepted == len(draft)
    last = Origin.BONUS if bonus else Origin.TARGET
    return RoundRecord(
        number=number,
        draft=Draft(tokens=tuple(draft), parents=parents, drafter="lookup" if draft else "none"),
        verdict=Verdict(tuple(range(accepted)), own, bonus, min(accepted + 1, len(draft))),
        committed=committed,
        origins=(*(Origin.DRAFT,) * accepted, last),
        draft_s=0.0001,
        forward_s=0.0142,
        total_s=0.015,
    )


ROUNDS = (
    make_round(1, (), 0, 1),
    make_round(2, (2, 3, 5, 6), 2, 4),
    make_round(3, (6, 7), 2, 8),
)
STATS = GenerationStats(
    prompt_tokens=5,
    completion_tokens=7,
    target_passes=3,
    draft_tokens_proposed=6,
    draft_tokens_tested=5,
    draft_tokens_accepted=4,
    prefill_s=0.05,
    decode_s=0.06,
)


class ScriptedStream(Iterator[GenerationEvent]):
    """The events of the fixed answer."""

    def __init__(self, rounds: Sequence[RoundRecord], pause_s: float, *, logprobs: bool) -> None:
        self._events = _events(rounds, logprobs)
        self._pause_s = pause_s
        self.stats = STATS
        self.closed = False

    def __next__(self) -> GenerationEvent:
        time.sleep(self._pause_s)
        return next(self._events)

    def __enter__(self) -> ScriptedStream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self.closed = True


class ScriptedPlanner:
    """What the model knows of its drafters, of which there are none, and when it was told to know something else."""

    def __init__(self) -> None:
        self.drafters: Mapping[str, Drafter] = {}
        self.learnt: Mapping[str, Any] = {"learnt": True}
        self.restored: list[Mapping[str, Any]] = []

    def restore(self, learnt: Mapping[str, Any]) -> None:
        self.restored.append(learnt)


class ScriptedLLM:
    """Answers every prompt alike, and remembers what it was asked."""

    model = None
    tokenizer = letter_tokenizer()

    def __init__(self, rounds: Sequence[RoundRecord] = ROUNDS, *, pause_s: float = 0.0) -> None:
        self.rounds = rounds
        self.pause_s = pause_s
        self.error: BaseException | None = None
        self.speculative_rounds: Sequence[RoundRecord] | None = None
        self.prompts: list[Any] = []
        self.params: list[SamplingParams] = []
        self.drafting: list[tuple[bool, int | None]] = []
        self.closed = False
        self.planner = ScriptedPlanner()
        self.forgotten = 0

    def __enter__(self) -> ScriptedLLM:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.closed = True

    @property
    def context_length(self) -> int:
        return 64

    def tokenize(self, prompt: Any) -> list[int]:
        return [1] * len(prompt[-1]["content"].split())

    def token_text(self, token_id: int) -> str:
        return PIECES[token_id]

    def forget_texts(self) -> None:
        self.forgotten += 1

    def stream(
        self,
        prompt: Any,
        params: SamplingParams,
        *,
        speculate: bool = True,
        draft_tokens: int | None = None,
        explain: bool = False,
    ) -> ScriptedStream:
        self.prompts.append(prompt)
        self.params.append(params)
        self.drafting.append((speculate, draft_tokens))
        if self.error is not None:
            raise self.error
        other = self.speculative_rounds if speculate else None
        return ScriptedStream(other or self.rounds, self.pause_s, logprobs=params.logprobs is not None)

    def generate(self, prompt: Any, params: SamplingParams, *, speculate: bool = True) -> Completion:
        events = list(self.stream(prompt, params, speculate=speculate))
        return Completion(
            text="".join(event.text for event in events),
            token_ids=tuple(token for event in events for token in event.token_ids),
            origins=tuple(event.origin for event in events),
            finish_reason="stop",
            stats=STATS,
        )


def _events(rounds: Sequence[RoundRecord], logprobs: bool) -> Iterator[GenerationEvent]:
    for record in rounds:
        for index, (token, origin) in enumerate(zip(record.committed, record.origins, strict=True)):
            last = index == len(record.committed) - 1
            finish: FinishReason | None = "stop" if last and record is rounds[-1] else None
            yield GenerationEvent(
                text=PIECES[token],
                token_ids=(token,),
                origin=origin,
                round=record.number,
                record=record if last else None,
                finish_reason=finish,
                logprobs=TokenLogprobs(token, -0.5, ((0, -math.inf),)) if logprobs else None,
            )


def main(words: Sequence[str]) -> int:
    slow = words[:1] == ["--slow"]
    llm = ScriptedLLM(ROUNDS * 1000, pause_s=0.005) if slow else ScriptedLLM()
    for module in (run, bench, chat):
        vars(module).update(open_llm=lambda *_, **__: llm, follow_plan=lambda _model, config, **__: config)
    vars(start).update(beside=lambda llm: llm)
    vars(verify).update(find_parts=lambda *_, **__: lambda _threads: make_parts(), QUICK=EXTENT)
    return entry.main(words[1:] if slow else words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
