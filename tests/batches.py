"""Ways to run batches and schedulers in tests, and to keep what they tell."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from borrador.engine.batch import Batch
from borrador.engine.progress import Progress
from borrador.engine.requests import Drafting
from borrador.engine.scheduler import Scheduler
from borrador.types import GenerationEvent, SamplingParams

PATIENCE_S = 60.0


def run(batch: Batch) -> tuple[dict[int, list[GenerationEvent]], dict[int, Exception]]:
    """Step until all requests have ended; their events, and the errors of those that failed."""
    events: dict[int, list[GenerationEvent]] = {}
    errors: dict[int, Exception] = {}
    while batch.is_busy:
        for progress in batch.step():
            events.setdefault(progress.key, []).extend(progress.events)
            if progress.error is not None:
                errors[progress.key] = progress.error
        used, limit = batch.cache_usage
        assert limit is None or used <= limit
    return events, errors


def text_of(events: Sequence[GenerationEvent]) -> str:
    return "".join(event.text for event in events)


def tokens_of(events: Sequence[GenerationEvent]) -> tuple[int, ...]:
    return tuple(token for event in events for token in event.token_ids)


class Clerk:
    """Listens to a scheduler, and keeps what it is told.

    Attributes:
        events: by the key of their request.
        errors: of requests that failed, by their keys.
        hook: called before anything is kept, on the scheduler's thread.
    """

    def __init__(self) -> None:
        self.events: dict[int, list[GenerationEvent]] = defaultdict(list)
        self.errors: dict[int, Exception] = {}
        self.hook: Callable[[], None] = lambda: None
        self._told = threading.Condition()

    def __call__(self, told: Sequence[Progress]) -> None:
        self.hook()
        with self._told:
            for progress in told:
                self.events[progress.key].extend(progress.events)
                if progress.error is not None:
                    self.errors[progress.key] = progress.error
            self._told.notify_all()

    def wait_for(self, *keys: int) -> None:
        with self._told:
            assert self._told.wait_for(lambda: all(self.has_ended(key) for key in keys), PATIENCE_S)

    def has_ended(self, key: int) -> bool:
        events = self.events.get(key, [])
        return key in self.errors or bool(events and events[-1].finish_reason)

    def tokens(self, key: int) -> tuple[int, ...]:
        return tokens_of(self.events.get(key, []))

    @contextmanager
    def holding(self) -> Iterator[Callable[[], None]]:
        """Keep the scheduler from another step as soon as it tells something; gives what waits for that."""
        gate, held = threading.Event(), threading.Event()

        def hold() -> None:
            held.set()
            assert gate.wait(PATIENCE_S)

        def wait() -> None:
            assert held.wait(PATIENCE_S)

        self.hook = hold
        try:
            yield wait
        finally:
            self.hook = lambda: None
            gate.set()


def send(scheduler: Scheduler, prompt: str, params: SamplingParams, namespace: str = "", **options: Any) -> int:
    """Let a scheduler write an answer; its key."""
    with scheduler.reserve(1, namespace) as reservation:
        return scheduler.submit(scheduler.prepare(prompt, params, Drafting()), reservation, **options)


def eventually(condition: Callable[[], bool]) -> None:
    waited_s, last = 0.0, time.monotonic()
    while not condition():
        now = time.monotonic()
        waited_s += min(now - last, 1.0)  # a machine that stood still in between does not count
        last = now
        assert waited_s < PATIENCE_S
        time.sleep(0.001)
