"""The events of one answer, in the hands of a user."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager
from types import TracebackType

from borrador.engine.session import Session
from borrador.types import FinishReason, GenerationEvent, GenerationStats

Turn = Callable[["weakref.ref[AnswerStream]"], AbstractContextManager[None]]


class AnswerStream(Iterator[GenerationEvent]):
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
        # Neither the events nor the turn hold the stream itself, so that dropping it ends the answer.
        self._events = _write(weakref.ref(self), turn, open_session, self._sessions)

    def __next__(self) -> GenerationEvent:
        try:
            event = next(self._events)
        except BaseException:
            self.close()
            raise
        self._finish_reason = event.finish_reason
        return event

    def __enter__(self) -> AnswerStream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def stats(self) -> GenerationStats:
        """What the answer cost so far."""
        return self._sessions[0].stats if self._sessions else GenerationStats()

    @property
    def finish_reason(self) -> FinishReason | None:
        """Why the answer ended: `cancelled` where it was closed or failed before that; None while it goes on."""
        return self._finish_reason

    def close(self) -> None:
        """Stop writing. Safe to call twice."""
        self._events.close()
        self._finish_reason = self._finish_reason or "cancelled"


def _write(
    stream: weakref.ref[AnswerStream], turn: Turn, open_session: Callable[[], Session], sessions: list[Session]
) -> Generator[GenerationEvent, None, None]:
    with turn(stream):
        sessions.append(open_session())
        yield from sessions[0].events()
