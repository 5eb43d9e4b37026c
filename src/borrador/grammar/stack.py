"""Room for recursion.

The matching library compiles what refers to each other by recursion. An overflow of the stack would end the process.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

Result = TypeVar("Result")

_BYTES = 1 << 28  # of addresses; only what is used takes memory
_lock = threading.Lock()


def with_deep_stack(call: Callable[[], Result]) -> Result:
    """What a call gives or raises, made in a thread whose stack has 256 MiB."""
    outcome: Future[Result] = Future()

    def work() -> None:
        try:
            outcome.set_result(call())
        except BaseException as error:  # noqa: BLE001 - raised again in the thread that asked
            outcome.set_exception(error)

    thread = threading.Thread(target=work, name="borrador-grammar", daemon=True)
    with _lock:  # the size is one for the whole process
        usual = threading.stack_size(_BYTES)
        try:
            thread.start()
        finally:
            threading.stack_size(usual)
    return outcome.result()
