"""The answers to one HTTP request, from admission to the last event, whatever ends it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from types import TracebackType
from typing import Any, Protocol, TypeVar

from starlette.types import Receive

from borrador.engine.batch import Progress
from borrador.engine.member import Request
from borrador.engine.scheduler import Scheduler
from borrador.engine.seats import Reservation
from borrador.server.config import ServerConfig
from borrador.types import GenerationStats

Result = TypeVar("Result")
Step = Sequence[tuple[int, Progress]]

_EVENT_BYTES = 256  # that an event takes in a stream, about
_LOGPROB_BYTES = 96  # that each likely token adds


class ClientGoneError(Exception):
    """Nobody reads the answer any more."""


class Switchboard(Protocol):
    """Says whose a progress is; see `borrador.server.bridge.Bridge`."""

    async def work(self, call: Callable[[], Result]) -> Result: ...

    def connect(self, key: int, answers: Answers) -> None: ...

    def disconnect(self, key: int) -> None: ...


class Answers:
    """Answers that are written for a client. Leaving the context ends whatever of them is still being written.

    Args:
        bridge: delivers progress.
        scheduler: writes.
        reservation: has a seat for each answer.
        config: the server's limits.
    """

    def __init__(
        self, bridge: Switchboard, scheduler: Scheduler, reservation: Reservation, config: ServerConfig
    ) -> None:
        self._bridge = bridge
        self._scheduler = scheduler
        self._reservation = reservation
        self._config = config
        self._keys: list[int] = []
        self._indices: dict[int, int] = {}
        self._inbox: list[tuple[int, Progress]] = []
        self._unread = 0
        self._most_unread = 0
        self._waiter: asyncio.Future[None] | None = None
        self._watcher: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._task = asyncio.current_task()
        self._loop = asyncio.get_running_loop()
        self.is_gone = False

    async def __aenter__(self) -> Answers:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def watch(self, receive: Receive) -> None:
        """End the answers as soon as the client leaves."""
        self._watcher = self._loop.create_task(_until_gone(receive))
        self._watcher.add_done_callback(lambda _: self._leave())

    async def prepare(self, call: Callable[[], Result]) -> Result:
        """What a blocking call gives. Raises ClientGoneError where the client leaves meanwhile."""
        return await self._unless_gone(self._bridge.work(call))

    def submit(self, requests: Sequence[Request], logprobs: int | None) -> None:
        """Let answers be written, in the order of their indices.

        Args:
            requests: one for each seat.
            logprobs: likely tokens that they report, which say how large their events are.
        """
        self._most_unread = self._config.unsent_bytes // (_EVENT_BYTES + _LOGPROB_BYTES * (1 + (logprobs or 0)))
        for index, request in enumerate(requests):
            key = self._scheduler.submit(request, self._reservation, deadline_s=self._config.request_timeout_s)
            self._keys.append(key)
            self._indices[key] = index
            self._bridge.connect(key, self)

    async def next(self) -> Step:
        """What happened since the last call, at least one thing; nothing where nothing did for a ping's time.

        Raises:
            ClientGoneError: the client left, or it does not read.
        """
        if not self._inbox and not self.is_gone:
            await self._wait()
        if self.is_gone:
            raise ClientGoneError
        step, self._inbox, self._unread = self._inbox, [], 0
        return step

    def take(self, progress: Progress) -> None:
        """Keep what a step brought until it is asked for. A client that leaves too much of it unread is left alone."""
        self._inbox.append((self._indices[progress.key], progress))
        self._unread += len(progress.events)
        if self._unread > self._most_unread:
            self._leave()
            if self._task is not None:  # it waits until the client reads
                self._task.cancel()
        self._wake()

    def stats(self, index: int) -> GenerationStats:
        """What an answer cost so far."""
        return self._scheduler.stats(self._keys[index])

    def end(self) -> None:
        """End what is still being written. Safe to call twice."""
        if self._watcher is not None:
            self._watcher.cancel()
        if self._timer is not None:
            self._timer.cancel()
        self._reservation.release()
        while self._keys:
            key = self._keys.pop()
            self._bridge.disconnect(key)
            self._scheduler.forget(key)

    def _leave(self) -> None:
        """Free the slots at once, whatever the task does."""
        self.is_gone = True
        for key in self._keys:
            self._scheduler.cancel(key)
        self._wake()

    async def _wait(self) -> None:
        self._waiter = self._loop.create_future()
        self._timer = self._loop.call_later(self._config.ping_s, self._wake)
        try:
            await self._waiter
        finally:
            self._timer.cancel()
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def _unless_gone(self, work: Awaitable[Result]) -> Result:
        working: asyncio.Future[Result] = asyncio.ensure_future(work)
        working.add_done_callback(lambda done: done.cancelled() or done.exception())  # it may fail unseen
        waiting: list[asyncio.Future[Any]] = [working] if self._watcher is None else [working, self._watcher]
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        if self.is_gone or not working.done():
            working.cancel()
            raise ClientGoneError
        return working.result()


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
