"""An event loop whose time passes only where all wait, and then at once: what is said of times is said exactly."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop with a clock of its own, which begins at 100 seconds."""

    def __init__(self) -> None:
        self.now = 100.0
        super().__init__(_Selector(self))

    def time(self) -> float:
        return self.now


class _Selector(selectors.SelectSelector):
    """Waits by putting the clock on."""

    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> Any:
        if timeout:
            self._loop.now += timeout
        return super().select(0)


def run(work: Coroutine[Any, Any, Result]) -> Result:
    """What this work gives, which must wait for nothing but time."""
    loop = VirtualLoop()
    try:
        return loop.run_until_complete(work)
    finally:
        loop.close()
