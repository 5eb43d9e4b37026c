"""Calls of code that may hang, each with a deadline."""

from __future__ import annotations

import ctypes
import queue
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class Worker:
    """One thread that runs calls in their order. After a call that missed its deadline it must not be used any more.

    Args:
        name: of the thread.
    """

    def __init__(self, name: str) -> None:
        self._calls: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def call(self, function: Callable[..., T], *arguments: Any, within_s: float) -> T:
        """The function's result, or what it raises.

        Raises:
            TimeoutError: it did not end within so many seconds; it is asked to stop, which it does at its next line of
                Python.
        """
        done: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()
        self._calls.put(lambda: done.put(_outcome(function, arguments)))
        try:
            result, error = done.get(timeout=within_s)
        except queue.Empty:
            self._interrupt()
            raise TimeoutError(f"it took longer than {within_s:g} s") from None
        if error is not None:
            raise error
        return result  # type: ignore[no-any-return]

    def close(self) -> None:
        """End the thread once it is idle. Safe to call twice."""
        self._calls.put(None)

    def _run(self) -> None:
        while (call := self._calls.get()) is not None:
            try:
                call()
            except SystemExit:  # interrupted, in the middle of anything
                return

    def _interrupt(self) -> None:
        """Let the thread's code raise SystemExit: a loop without an end would take time from everyone else."""
        if self._thread.ident is not None:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._thread.ident), ctypes.py_object(SystemExit))


def _outcome(function: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[Any, BaseException | None]:
    try:
        return function(*arguments), None
    except Exception as error:  # noqa: BLE001 (handed to the caller)
        return None, error
