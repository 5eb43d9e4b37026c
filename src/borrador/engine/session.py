"""One request, from prompt tokens to events."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from borrador.engine.answer import Answer
from borrador.engine.candidates import Load
from borrador.engine.round import RoundState, play_round
from borrador.engine.stats import StatsCounter
from borrador.models.prefix import CachedSequence, prefill
from borrador.models.target import Target
from borrador.types import FinishReason, GenerationEvent, GenerationStats, Origin, RoundRecord

ObservePass = Callable[[int, float, Load], None]


class Session:
    """Writes one answer: alone by `events`, or in step with others, see `borrador.engine.batch`.

    Args:
        state: the round's parts; its context holds the prompt.
        answer: where the answer goes.
        sequence: the target's cache, kept for the next request.
        observe_pass: told rows, seconds and load of every pass that decodes.

    Attributes:
        state: as it stands between rounds.
        sequence: in which it writes.
    """

    def __init__(self, state: RoundState, answer: Answer, sequence: CachedSequence, observe_pass: ObservePass) -> None:
        self.state = state
        self.sequence = sequence
        self._answer = answer
        self._observe_pass = observe_pass
        self._stats = StatsCounter(len(state.context))
        self._has_moved = False

    @property
    def stats(self) -> GenerationStats:
        return self._stats.snapshot()

    @property
    def is_finished(self) -> bool:
        return self._answer.finish_reason is not None

    @property
    def unread(self) -> int:
        """Tokens of the context that its cache does not hold."""
        return len(self.state.context) - self.state.target.length

    @property
    def growth(self) -> tuple[int, int]:
        """Tokens that its cache holds, and that it must hold."""
        return self.state.target.length, len(self.state.context)

    def events(self) -> Iterator[GenerationEvent]:
        """Write the answer. Closing the iterator ends it early; the cache then holds committed tokens alone."""
        state = self.state
        try:
            start = time.perf_counter()
            self.begin()
            prefill(state.target, state.context)
            self.add_prefill(time.perf_counter() - start)
            while not self.is_finished:
                record = play_round(state)
                self._account(record)
                yield from self.take(record)
        finally:
            self.end()

    def begin(self) -> None:
        """Keep what the cache holds of the prompt already."""
        self.sequence.resume(self.state.context)
        self._count_cached(self.state.target.length)

    def move(self, sequence: CachedSequence) -> None:
        """Go on in another sequence, whatever that holds, where this one had to be given up. `begin` must follow."""
        self.sequence = sequence
        self.state.target = sequence.target
        self._has_moved = True

    def adopt(self, source: Target, length: int) -> None:
        """Copy the prompt's first tokens, which another sequence holds, instead of evaluating them."""
        held = self.state.target.length
        self.state.target.copy_from(source, length)
        self._count_cached(length - held)

    def add_prefill(self, seconds: float) -> None:
        """Count time that went by before the first round."""
        self._stats.add_prefill(seconds)

    def take(self, record: RoundRecord) -> Iterator[GenerationEvent]:
        """Count a round; its events."""
        self._stats.add_round(record)
        return self._events_of(record)

    def expire(self) -> GenerationEvent:
        """End the answer where it stands, since its time is over; the event that closes it."""
        return closing_event(self._answer.expire(), "timeout", self.state.rounds)

    def end(self) -> None:
        """Free what the request holds, however it ended; the cache then holds committed tokens alone."""
        try:
            self.sequence.settle(self.state.context)
        finally:
            self.free()

    def free(self) -> None:
        """Free what the request holds besides its sequence."""
        self.state.proposer.close()

    def _count_cached(self, tokens: int) -> None:
        """Count tokens of the prompt that need no evaluation; what is evaluated again was counted at the first time."""
        if not self._has_moved:
            self._stats.add_cached(tokens)

    def _account(self, record: RoundRecord) -> None:
        if record.number > 1 and record.pending == 1:
            context = len(self.state.context) - len(record.committed) - 1
            self._observe_pass(1 + len(record.draft.tokens), record.forward_s, Load(context=context))

    def _events_of(self, record: RoundRecord) -> Iterator[GenerationEvent]:
        answer = self._answer
        last = len(record.committed) - 1
        logprobs = record.verdict.logprobs or (None,) * (last + 1)
        for index, (token, origin, text) in enumerate(zip(record.committed, record.origins, answer.texts, strict=True)):
            ends = index == last
            yield GenerationEvent(
                text=text + answer.tail if ends else text,
                token_ids=(token,),
                origin=origin,
                round=record.number,
                record=record if ends else None,
                finish_reason=answer.finish_reason if ends else None,
                logprobs=logprobs[index],
            )
        if last < 0:
            yield closing_event(answer.tail, answer.finish_reason, record.number, record)


def closing_event(
    text: str, finish_reason: FinishReason | None, number: int, record: RoundRecord | None = None
) -> GenerationEvent:
    """An event without a token, at the end of an answer."""
    return GenerationEvent(
        text=text, token_ids=(), origin=Origin.TARGET, round=number, record=record, finish_reason=finish_reason
    )
