"""The events of one answer, in the hands of a user."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager
from types import TracebackType

from borrador.engine.session import Session
from borrador.types import FinishReason, GenerationEvent, GenerationStats


class AnswerStream(Iterator[GenerationEvent]):
    """The events of one answer, as they become certain. Closing it early cancels the answer cleanly.

    The answer begins with the first event that is asked for, once the answers of other threads are finished. Use it as
    an iterator, and as a context manager where the loop may be left early.

    Args:
        turn: gives the context that is held while the answer is written.
        open_session: starts the request; called once it is this answer's turn.
    """

    def __init__(
        self, turn: Callable[[AnswerStream], AbstractContextManager[None]], open_session: Callable[[], Session]
    ) -> None:
        self._turn = turn
        self._open_session = open_session
        self._session: Session | None = None
        self._finish_reason: FinishReason | None = None
        self._events = self._write()

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
        return self._session.stats if self._session else GenerationStats()

    @property
    def finish_reason(self) -> FinishReason | None:
        """Why the answer ended: `cancelled` where it was closed or failed before that; None while it goes on."""
        return self._finish_reason

    def close(self) -> None:
        """Stop writing. Safe to call twice."""
        self._events.close()
        self._finish_reason = self._finish_reason or "cancelled"

    def _write(self) -> Generator[GenerationEvent, None, None]:
        with self._turn(self):
            self._session = self._open_session()
            yield from self._session.events()
