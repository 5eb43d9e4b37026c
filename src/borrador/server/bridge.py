"""Between the event loop, on which clients wait, and the scheduler's thread, on which answers are written."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal, TypeVar

from borrador.engine.batch import Progress
from borrador.engine.llm import LLM
from borrador.engine.scheduler import Scheduler
from borrador.server.answers import Answers
from borrador.server.config import ServerConfig
from borrador.server.errors import ApiError

Result = TypeVar("Result")
State = Literal["loading", "ready", "ending"]

_WORKERS = 2  # prepare requests: one is busy while another waits for the interpreter
_PREPARE_S = 30.0
_log = logging.getLogger("borrador.server")


@dataclass(frozen=True, slots=True)
class Served:
    """What is served.

    Attributes:
        name: of the model, for clients.
        llm: has the model.
        scheduler: writes its answers.
        created: when it was loaded, in seconds since 1970.
    """

    name: str
    llm: LLM
    scheduler: Scheduler
    created: int


class Bridge:
    """Hands requests to the scheduler, and what comes of them to the tasks that wait for it.

    It is there before the model is: until `open` every request is refused with 503, and again after `end`. All methods
    but `listen` belong to the event loop.

    Args:
        config: the server's limits.
    """

    def __init__(self, config: ServerConfig) -> None:
        self.config = config
        self._served: Served | None = None
        self._is_ending = False
        self._answers: dict[int, Answers] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._workers = ThreadPoolExecutor(_WORKERS, thread_name_prefix="borrador-prepare")

    @property
    def state(self) -> State:
        if self._is_ending:
            return "ending"
        return "loading" if self._served is None else "ready"

    @property
    def is_ready(self) -> bool:
        """Requests are taken."""
        return self.state == "ready" and self.served.scheduler.is_healthy

    @property
    def is_busy(self) -> bool:
        """Answers are waited for."""
        return bool(self._answers)

    @property
    def served(self) -> Served:
        """What is served. Raises ApiError, with status 503, where nothing is yet."""
        if self._served is None:
            raise unavailable("The model is being loaded. Try again.", "loading")
        return self._served

    def open(self, served: Served) -> None:
        """Begin to take requests; the scheduler must have `listen` as its listener."""
        self._served = served
        self._loop = asyncio.get_running_loop()

    def end(self) -> None:
        """Take no more requests; those that are being answered go on."""
        self._is_ending = True

    def close(self) -> None:
        """Stop preparing requests, once nothing more is to be answered."""
        self._workers.shutdown(wait=False, cancel_futures=True)

    def admit(self, count: int, namespace: str) -> Answers:
        """Room for a request with so many answers, before any work is done for it.

        Raises:
            QueueFullError: there is none now.
            ApiError: the server does not take requests.
        """
        if self._is_ending:
            raise unavailable("The server is being shut down. Try again in a while.", "ending")
        served = self.served
        reservation = served.scheduler.reserve(count, namespace)
        return Answers(self, served.scheduler, reservation, self.config)

    async def work(self, call: Callable[[], Result]) -> Result:
        """What a call gives that would block the event loop.

        Raises:
            ApiError: it takes too long.
        """
        future = asyncio.get_running_loop().run_in_executor(self._workers, call)
        try:
            return await asyncio.wait_for(future, _PREPARE_S)
        except asyncio.TimeoutError:
            raise unavailable(f"The request was not prepared within {_PREPARE_S:g} s.", "timeout") from None

    def connect(self, key: int, answers: Answers) -> None:
        """Tell these answers what comes of a request."""
        self._answers[key] = answers

    def disconnect(self, key: int) -> None:
        """Tell nobody any more."""
        self._answers.pop(key, None)

    def listen(self, told: Sequence[Progress]) -> None:
        """The scheduler's listener, on its thread: one call of the event loop for each step."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                self._loop.call_soon_threadsafe(self._deliver, told)

    def _deliver(self, told: Sequence[Progress]) -> None:
        for progress in told:
            answers = self._answers.get(progress.key)
            if answers is not None:
                answers.take(progress)


def unavailable(message: str, code: str) -> ApiError:
    """The error of a server that cannot serve now."""
    return ApiError(503, message, code=code, headers={"Retry-After": "1"})
