"""A thread that writes answers for whoever asks: requests come and go at any time, and share the model's passes."""

from __future__ import annotations

import contextlib
import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from itertools import count
from types import TracebackType

from borrador.engine.batch import Batch
from borrador.engine.line import Request
from borrador.engine.llm import LLM
from borrador.engine.progress import Progress as Progress
from borrador.engine.prompts import MOST_CONCURRENT, Prompt
from borrador.engine.requests import Drafting
from borrador.engine.seats import Reservation, Seats
from borrador.engine.snapshot import Snapshot, Tally
from borrador.errors import UnavailableError
from borrador.types import GenerationStats, SamplingParams
from borrador.values import integer

Listener = Callable[[Sequence[Progress]], None]

_MOST_WAITING = 1 << 20
_MOST_BYTES = 1 << 50
_log = logging.getLogger("borrador")


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerLimits:
    """How much a scheduler takes on.

    Attributes:
        concurrent: requests written at a time.
        waiting: further ones that may wait for their turn.
        cache_bytes: memory for keys and values of the target; None takes half of what is free.
    """

    concurrent: int = 64
    waiting: int = 64
    cache_bytes: int | None = None

    def __post_init__(self) -> None:
        integer("concurrent", self.concurrent, 1, MOST_CONCURRENT)
        integer("waiting", self.waiting, 0, _MOST_WAITING)
        if self.cache_bytes is not None:
            integer("cache_bytes", self.cache_bytes, 1, _MOST_BYTES)


class Scheduler:
    """Writes answers on a thread of its own, which has the model to itself until `close`.

    While it lives, the LLM's own methods that write answers, and its `close`, raise UsageError; starting it waits for
    the answers that other threads are writing. All methods may be called from any thread.

    A request passes through `reserve`, `prepare` and `submit`. What comes of it is told to the listener, after every
    step for all requests that it served, until an event with a finish reason or an error has been told, or the request
    is cancelled.

    Args:
        llm: writes; it is left open by `close`.
        limits: how much to take on.
        listener: called on the scheduler's thread, which waits for it: it must return at once.

    Raises:
        UsageError: the LLM is closed or serves another scheduler, or this thread has not finished its last answer.
    """

    def __init__(self, llm: LLM, limits: SchedulerLimits, listener: Listener) -> None:
        self._llm = llm
        self._listener = listener
        self._seats = Seats(limits.concurrent + limits.waiting)
        self._seat_limit = limits.concurrent + limits.waiting
        self._wake = threading.Condition()
        self._orders: deque[Callable[[], None]] = deque()  # for the thread, between two steps
        self._unfinished: set[int] = set()
        self._leaving: set[int] = set()  # cancelled, and still there
        self._tally = Tally()
        self._running = 0  # after the last step
        self._keys = count(1)
        self._closes_at: float | None = None
        self._broken = False
        self._turn = ExitStack()
        self._batch: Batch = self._turn.enter_context(llm.serve(limits.concurrent, limits.cache_bytes))
        self._thread = threading.Thread(target=self._run, name="borrador-scheduler", daemon=True)
        self._thread.start()

    @property
    def is_healthy(self) -> bool:
        """Requests can be written: it is neither closed nor broken."""
        return self._closes_at is None and not self._broken

    def reserve(self, count: int = 1, namespace: str = "") -> Reservation:
        """Seats for requests, to be had before any work is done for them.

        Args:
            count: how many requests.
            namespace: requests share nothing with those of other namespaces, and namespaces take turns.

        Raises:
            QueueFullError: there is no room for them now.
            UnavailableError: the scheduler is closed or broken.
            UsageError: there is never room for so many.
        """
        self._require_healthy()
        return self._seats.reserve(count, namespace)

    def prepare(self, prompt: Prompt, params: SamplingParams | None, drafting: Drafting) -> Request:
        """Check and tokenise what is asked for, which may take a while. Errors as for `LLM.stream`."""
        return self._llm.prepare(prompt, params, drafting)

    def submit(self, request: Request, reservation: Reservation, *, deadline_s: float | None = None) -> int:
        """Let a request be written, for which the reservation must have a seat.

        Args:
            request: from `prepare`; it can be submitted once.
            reservation: one of its seats is used.
            deadline_s: seconds from now after which the answer ends, with finish reason `timeout`.

        Returns:
            The key by which progress is told.

        Raises:
            MemoryLimitError: its longest answer does not fit into the memory for keys and values.
            UnavailableError: the scheduler is closed or broken.
            UsageError: the reservation has no seat left.
        """
        self._batch.require_room(request)
        deadline = math.inf if deadline_s is None else time.monotonic() + deadline_s
        with self._wake:
            self._require_healthy()
            reservation.use()
            key = next(self._keys)
            self._unfinished.add(key)
            self._tally.requests_admitted += 1
            namespace = reservation.namespace
            self._order(partial(self._batch.add, key, request, namespace=namespace, deadline=deadline))
        return key

    def cancel(self, key: int) -> None:
        """End a request wherever it stands, within a step; nothing more is told of it, unless it is being told now.

        Does nothing for a request that has ended.
        """
        with self._wake:
            if key in self._unfinished:
                self._unfinished.remove(key)
                self._leaving.add(key)
                self._order(partial(self._cancel, key))

    def stats(self, key: int) -> GenerationStats:
        """What a request's answer cost so far; until `forget`. A step counts in full for each request it served."""
        return self._batch.stats(key)

    def forget(self, key: int) -> None:
        """Drop the statistics of a request; one that has not ended is cancelled."""
        self.cancel(key)
        with self._wake:
            self._order(partial(self._batch.forget, key))

    def snapshot(self) -> Snapshot:
        """The numbers of this moment."""
        with self._wake:
            running, tally, cache = self._running, self._tally, self._batch.cache_usage
            ended = tally.requests_finished + tally.requests_cancelled + tally.requests_failed
            return Snapshot(
                running=running,
                waiting=tally.requests_admitted - ended - running,
                reserved=self._seats.taken,
                seats=self._seat_limit,
                is_healthy=self.is_healthy,
                cache_bytes_used=cache.used_bytes,
                cache_bytes_limit=cache.limit_bytes,
                tokens_per_second_speculative=self._batch.speeds.speculative,
                tokens_per_second_plain=self._batch.speeds.plain,
                **tally.as_dict(),
                **asdict(self._batch.census),
            )

    def close(self, grace_s: float = 0.0) -> None:
        """Take no more requests, and end; safe to call twice.

        Args:
            grace_s: seconds for requests to come to their end. Those that do not are failed with UnavailableError.
        """
        with self._wake:
            closes_at = time.monotonic() + grace_s
            self._closes_at = closes_at if self._closes_at is None else min(closes_at, self._closes_at)
            self._wake.notify()
        self._thread.join()

    def __enter__(self) -> Scheduler:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _run(self) -> None:
        try:
            while self._follow_orders():
                self._tell(self._batch.step())
                self._llm.remember()
            self._fail_all(UnavailableError("the server shut down before this answer was finished", "Try again."))
        except BaseException as error:  # noqa: BLE001 - nobody may wait for a thread that is gone
            _log.exception("the scheduler failed")
            self._broken = True
            self._fail_all(UnavailableError(f"the scheduler failed: {type(error).__name__}", "Start again."))
        finally:
            self._turn.close()

    def _follow_orders(self) -> bool:
        """Do what was ordered since the last step; False when it is time to end."""
        while True:
            with self._wake:
                while self._orders:
                    self._orders.popleft()()
                if self._closes_at is not None and time.monotonic() >= self._closes_at:
                    return False
                if self._batch.is_busy:
                    return True
                if self._closes_at is not None:
                    return False
                self._wake.wait()

    def _order(self, order: Callable[[], None]) -> None:
        self._orders.append(order)
        self._wake.notify()

    def _cancel(self, key: int) -> None:
        if key in self._leaving:
            self._batch.cancel(key)
            self._running = self._batch.running
            self._count_cancelled(key)

    def _count_cancelled(self, key: int) -> None:
        self._leaving.remove(key)
        self._tally.requests_cancelled += 1
        self._seats.give_back()

    def _tell(self, told: Sequence[Progress]) -> None:
        with self._wake:
            wanted = [progress for progress in told if progress.key in self._unfinished]
            self._running = self._batch.running
            for progress in told:
                if self._tally.count(progress):
                    self._unfinished.discard(progress.key)
                    self._leaving.discard(progress.key)
                    self._seats.give_back()
        if not wanted:
            return
        try:
            self._listener(wanted)
        except Exception:  # noqa: BLE001 - answers go on whoever listens
            _log.exception("a listener failed")

    def _fail_all(self, error: Exception) -> None:
        """Let nobody wait any more."""
        with self._wake:
            self._orders.clear()
            for key in sorted(self._leaving):
                self._count_cancelled(key)
            keys = sorted(self._unfinished)
        with contextlib.suppress(Exception):  # where it broke down, it may not even end
            self._batch.close()
        self._tell([Progress(key, error=error) for key in keys])

    def _require_healthy(self) -> None:
        if self._closes_at is not None:
            raise UnavailableError("the server is shutting down and takes no more requests", "Try another server.")
        if self._broken:
            raise UnavailableError("the scheduler has failed and takes no more requests", "Start the server again.")
