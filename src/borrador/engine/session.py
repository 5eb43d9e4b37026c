"""One request, from prompt tokens to events."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from borrador.engine.answer import Answer
from borrador.engine.candidates import Load
from borrador.engine.round import RoundState, play_round
from borrador.engine.stats import StatsCounter
from borrador.models.prefix import CachedSequence, prefill
from borrador.types import GenerationEvent, GenerationStats, Origin, RoundRecord

ObservePass = Callable[[int, float, Load], None]


class Session:
    """Writes one answer.

    Args:
        state: the round's parts; its context holds the prompt.
        answer: where the answer goes.
        sequence: the target's cache, kept for the next request.
        observe_pass: told rows, seconds and load of every pass that decodes.
    """

    def __init__(self, state: RoundState, answer: Answer, sequence: CachedSequence, observe_pass: ObservePass) -> None:
        self._state = state
        self._answer = answer
        self._sequence = sequence
        self._observe_pass = observe_pass
        self._stats = StatsCounter(len(state.context))

    @property
    def stats(self) -> GenerationStats:
        return self._stats.snapshot()

    def events(self) -> Iterator[GenerationEvent]:
        """Write the answer. Closing the iterator ends it early; the cache then holds committed tokens alone."""
        state = self._state
        try:
            start = time.perf_counter()
            self._sequence.resume(state.context)
            cached_tokens = state.target.length
            prefill(state.target, state.context)
            self._stats.add_prefill(time.perf_counter() - start, cached_tokens)
            while self._answer.finish_reason is None:
                record = play_round(state)
                self._account(record)
                yield from self._events_of(record)
        finally:
            self._sequence.settle(state.context)
            state.proposer.close()

    def _account(self, record: RoundRecord) -> None:
        self._stats.add_round(record)
        if record.number > 1 and record.pending == 1:
            context = len(self._state.context) - len(record.committed) - 1
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
            yield GenerationEvent(
                text=answer.tail,
                token_ids=(),
                origin=Origin.TARGET,
                round=record.number,
                record=record,
                finish_reason=answer.finish_reason,
            )
