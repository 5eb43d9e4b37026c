"""Whose turn it is to write with a model: one answer, several together, or a scheduler for as long as it lives."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from borrador.errors import UsageError


class Turns:
    """Turns of several threads, one after another, until there are no more."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._writer: int | None = None  # the thread whose answer is being written
        self._stream: weakref.ref[Any] | None = None
        self._serves = False
        self._closed = False

    @contextmanager
    def taken(self, stream: weakref.ref[Any]) -> Iterator[None]:
        """The turn of a stream, once those before it are over.

        Raises:
            UsageError: there are no more turns, a scheduler has them all, or this thread has one already.
        """
        self._require_free()
        with self._lock:
            self.require_open()
            self._writer, self._stream = threading.get_ident(), stream
            try:
                yield
            finally:
                self._writer = self._stream = None

    @contextmanager
    def served(self) -> Iterator[None]:
        """The turn of a scheduler. Nobody else gets one until it is over; errors as for `taken`."""
        self._require_free()
        with self._lock:
            self.require_open()
            self._serves = True
            try:
                yield
            finally:
                self._serves = False

    @contextmanager
    def last(self) -> Iterator[bool]:
        """The last turn, once those before it are over; whether it is, or was before. What this thread has not finished
        is closed first.

        Raises:
            UsageError: a scheduler has all turns.
        """
        self._require_no_scheduler()
        unfinished = self._stream() if self._stream is not None else None
        if unfinished is not None and self._writer == threading.get_ident():
            unfinished.close()
        with self._lock:
            is_last, self._closed = not self._closed, True
            yield is_last

    def require_open(self) -> None:
        """Raise UsageError where there are no more turns."""
        if self._closed:
            raise UsageError("this LLM is closed", "Load the model again.")

    def _require_free(self) -> None:
        self._require_no_scheduler()
        if self._writer == threading.get_ident():
            raise UsageError(
                "a thread can write one answer at a time, and another is unfinished",
                "Finish or close it first.",
            )

    def _require_no_scheduler(self) -> None:
        if self._serves:
            raise UsageError("this LLM serves a scheduler and takes no other requests", "Close the scheduler first.")
