"""Answers by the engine in this process."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from borrador.chat.backend import Figures, Span
from borrador.chat.settings import Settings
from borrador.errors import UsageError
from borrador.types import GenerationEvent, GenerationStats, Message, RoundRecord

if TYPE_CHECKING:
    from borrador.engine.llm import LLM
    from borrador.engine.stream import AnswerStream


class EngineBackend:
    """Answers by a model that is loaded here.

    Args:
        llm: closed by whoever opened it.
        name: of the model.
        drafts: it has drafters.
    """

    tells_origins = True

    def __init__(self, llm: LLM, name: str, *, drafts: bool) -> None:
        self._llm = llm
        self.name = name
        self._drafts = drafts

    @property
    def context_length(self) -> int | None:
        return self._llm.context_length

    def require(self, settings: Settings) -> None:
        if settings.drafting.draft_tokens is not None and not self._drafts:
            raise UsageError("drafting needs a drafter, and there is none", "Start the chat without -d none.")

    def answer(
        self,
        messages: Sequence[Message],
        settings: Settings,
        *,
        origins: bool,  # noqa: ARG002 (the engine always tells them)
    ) -> EngineReply:
        drafting = settings.drafting
        stream = self._llm.stream(
            messages,
            settings.sampling,
            speculate=drafting.speculate,
            draft_tokens=drafting.draft_tokens,
            explain=drafting.speculate and drafting.draft_tokens is None,
        )
        return EngineReply(stream)


class EngineReply:
    """An answer of the engine; in each step what a round committed."""

    def __init__(self, stream: AnswerStream) -> None:
        self._stream = stream
        self._speedup = SpeedUp()
        self._finish_reason = "cancelled"
        self._start = time.perf_counter()
        self._first_token_s: float | None = None

    def __iter__(self) -> EngineReply:
        return self

    def __next__(self) -> list[Span]:
        spans: list[Span] = []
        with suppress(StopIteration):
            while True:
                event = next(self._stream)
                spans.append(Span(event.text, event.origin))
                self._note(event)
                if event.record is not None:
                    break
        if not spans:
            raise StopIteration
        return spans

    @property
    def figures(self) -> Figures:
        return describe(self._stream.stats, self._finish_reason, self._first_token_s, self._speedup.ratio)

    def close(self) -> None:
        self._stream.close()

    def _note(self, event: GenerationEvent) -> None:
        if self._first_token_s is None:
            self._first_token_s = time.perf_counter() - self._start
        if event.record is not None:
            self._speedup.add(event.record)
        if event.finish_reason is not None:
            self._finish_reason = event.finish_reason


class SpeedUp:
    """What passes without drafts would have taken for the same tokens, by measured costs, against what rounds took."""

    def __init__(self) -> None:
        self._plain_s = self._spent_s = 0.0
        self._drafted = False

    def add(self, record: RoundRecord) -> None:
        """Count a round; the first belongs to the prompt."""
        if record.number > 1 and record.reason is not None:
            self._plain_s += record.reason.plain_s * len(record.committed)
            self._spent_s += record.total_s
            self._drafted = self._drafted or bool(record.draft.tokens)

    @property
    def ratio(self) -> float | None:
        """None where nothing was drafted, or costs did not decide."""
        return self._plain_s / self._spent_s if self._drafted and self._spent_s else None


def describe(stats: GenerationStats, finish_reason: str, first_token_s: float | None, speedup: float | None) -> Figures:
    """The figures of an answer."""
    return Figures(
        finish_reason=finish_reason,
        prompt_tokens=stats.prompt_tokens,
        tokens=stats.completion_tokens,
        tokens_per_second=stats.tokens_per_second or None,
        first_token_s=first_token_s,
        target_passes=stats.target_passes,
        draft_tokens_tested=stats.draft_tokens_tested,
        draft_tokens_accepted=stats.draft_tokens_accepted,
        speedup=speedup,
    )
