"""The events of answers, in the hands of a user."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, closing
from types import TracebackType
from typing import Any, Generic, TypeVar

from borrador.engine.batch import Batch
from borrador.engine.line import Request
from borrador.engine.session import Session
from borrador.errors import BorradorError
from borrador.types import Completion, FinishReason, GenerationEvent, GenerationStats, SamplingParams

Item = TypeVar("Item")
Stream = TypeVar("Stream", bound="EventStream[Any]")
Turn = Callable[["weakref.ref[EventStream[Any]]"], AbstractContextManager[None]]


class EventStream(Iterator[Item], Generic[Item]):
    """Items as they become certain. Closing it early cancels what is being written, cleanly.

    Writing begins with the first item that is asked for, once the answers of other threads are finished. Use it as an
    iterator, and as a context manager where the loop may be left early: a stream that nobody holds any more is closed
    too, but when that happens is up to Python.
    """

    _items: Generator[Item, None, None]

    def __next__(self) -> Item:
        try:
            return next(self._items)
        except BaseException:
            self.close()
            raise

    def __enter__(self: Stream) -> Stream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop writing. Safe to call twice."""
        self._items.close()


class AnswerStream(EventStream[GenerationEvent]):
    """The events of one answer, as they become certain. Closing it early cancels the answer cleanly.

    The answer begins with the first event that is asked for, once the answers of other threads are finished. Use it as
    an iterator, and as a context manager where the loop may be left early: a stream that nobody holds any more is
    closed too, but when that happens is up to Python.

    Args:
        turn: gives the context that is held while the answer is written; told which stream it is.
        open_session: starts the request; called once it is this answer's turn.
    """

    def __init__(self, turn: Turn, open_session: Callable[[], Session]) -> None:
        self._sessions: list[Session] = []
        self._finish_reason: FinishReason | None = None
        # Neither the items nor the turn hold the stream itself, so that dropping it ends the answer.
        self._items = _write(weakref.ref(self), turn, open_session, self._sessions)

    def __next__(self) -> GenerationEvent:
        event = super().__next__()
        self._finish_reason = event.finish_reason
        return event

    @property
    def stats(self) -> GenerationStats:
        """What the answer cost so far."""
        return self._sessions[0].stats if self._sessions else GenerationStats()

    @property
    def finish_reason(self) -> FinishReason | None:
        """Why the answer ended: `cancelled` where it was closed or failed before that; None while it goes on."""
        return self._finish_reason

    def close(self) -> None:
        super().close()
        self._finish_reason = self._finish_reason or "cancelled"


class BatchStream(EventStream[tuple[int, GenerationEvent]]):
    """The events of several answers that are written together, each with the number of its prompt, as they become
    certain. Closing it early cancels all of them cleanly.

    A prompt that fails ends alone: its error is raised when all others are finished, the first where there are several.

    Args:
        turn: gives the context that is held while the answers are written; told which stream it is.
        batch: writes them.
        requests: one for each prompt.
        noun: what errors call them.
    """

    def __init__(self, turn: Turn, batch: Batch, requests: Sequence[Request], noun: str = "prompt") -> None:
        self._batch = batch
        self._cancelled: set[int] = set()
        self._items = _write_together(weakref.ref(self), turn, batch, requests, self._cancelled, noun)

    def stats(self, index: int) -> GenerationStats:
        """What the answer to a prompt cost so far. A pass that answers share counts in full for each of them."""
        return self._batch.stats(index)

    def cancel(self, index: int) -> None:
        """End the answer to a prompt; there are no more events of it. The others go on."""
        self._cancelled.add(index)
        self._batch.cancel(index)


def completion_of(
    events: Sequence[GenerationEvent], params: SamplingParams | None, stats: GenerationStats
) -> Completion:
    """The finished answer that these events make up."""
    logprobs = tuple(event.logprobs for event in events if event.logprobs is not None)
    return Completion(
        text="".join(event.text for event in events),
        token_ids=tuple(token for event in events for token in event.token_ids),
        origins=tuple(event.origin for event in events if event.token_ids),
        finish_reason=events[-1].finish_reason or "stop",
        logprobs=logprobs if params is not None and params.logprobs is not None else None,
        stats=stats,
    )


def collect(stream: BatchStream, params: Sequence[SamplingParams | None]) -> list[Completion]:
    """The answers of a whole stream, in the order of its requests, of which these are the parameters."""
    events: list[list[GenerationEvent]] = [[] for _ in params]
    with stream:
        for index, event in stream:
            events[index].append(event)
    answers = zip(events, params, strict=True)
    return [completion_of(written, of_one, stream.stats(i)) for i, (written, of_one) in enumerate(answers)]


def _write(
    stream: weakref.ref[EventStream[Any]], turn: Turn, open_session: Callable[[], Session], sessions: list[Session]
) -> Generator[GenerationEvent, None, None]:
    with turn(stream):
        sessions.append(open_session())
        yield from sessions[0].events()


def _write_together(
    stream: weakref.ref[EventStream[Any]],
    turn: Turn,
    batch: Batch,
    requests: Sequence[Request],
    cancelled: set[int],
    noun: str,
) -> Generator[tuple[int, GenerationEvent], None, None]:
    failed: dict[int, Exception] = {}
    with turn(stream), closing(batch):
        for index, request in enumerate(requests):
            if index not in cancelled:
                batch.add(index, request)
        while batch.is_busy:
            for progress in batch.step():
                if progress.error is not None:
                    failed[progress.key] = progress.error
                for event in progress.events:
                    if progress.key not in cancelled:
                        yield progress.key, event
    for index in sorted(failed.keys() - cancelled):
        raise named(failed[index], f"{noun} {index}") from failed[index]


def named(error: Exception, name: str) -> Exception:
    """An error that says whose it is; one that is not of our own making stays as it is."""
    return type(error)(f"{name}: {error}", error.hint) if isinstance(error, BorradorError) else error
