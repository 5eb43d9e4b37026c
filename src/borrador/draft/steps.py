"""Drafting in steps, so that several requests can draft together.

A drafter that needs a pass of its model yields it and is sent what it gave. Whoever runs the steps decides how passes
are made: one after another for one request, or one pass of a model for all that want one at the same time, which costs
about what one request's costs.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import NamedTuple, TypeVar

from borrador.errors import MemoryLimitError
from borrador.models.passes import Evidence, evaluate_batch
from borrador.models.target import Model, Rows, Target, Wanted

Result = TypeVar("Result")
Clock = Callable[[], float]


class DraftPass(NamedTuple):
    """A pass that drafting cannot go on without.

    Attributes:
        model: the draft model.
        target: the request's sequence on it.
        rows: to evaluate.
        wanted: what the pass is to give.
        within: tokens below this id are looked at alone.
    """

    model: Model
    target: Target
    rows: Rows
    wanted: Wanted
    within: int


class Passed(NamedTuple):
    """What a pass gave.

    Attributes:
        evidence: logits, valid until the next pass of the model, or the most likely tokens.
        seconds: it took.
        company: how many requests shared it.
    """

    evidence: Evidence
    seconds: float
    company: int = 1


Steps = Generator[DraftPass, Passed, Result]


class WorkClock:
    """Seconds of one request's own work. It stands still while others are served, and is charged its part of what was
    done for several.

    Args:
        clock: seconds.
    """

    def __init__(self, clock: Clock = time.perf_counter) -> None:
        self._clock = clock
        self._stopped: float | None = None
        self._away = self._saved = 0.0

    def __call__(self) -> float:
        return (self._clock() if self._stopped is None else self._stopped) - self._away

    def unshared(self) -> float:
        """The seconds that it would show if this request had paid for all passes alone."""
        return self() + self._saved

    def stop(self) -> None:
        """Stand still."""
        self._stopped = self._clock()

    def go_on(self, shared_s: float = 0.0, company: int = 1) -> None:
        """Run again, charged with its part of what took so many seconds for so many requests."""
        if self._stopped is not None:
            self._away += self._clock() - self._stopped - shared_s / company
            self._saved += shared_s - shared_s / company
            self._stopped = None


def alone(steps: Steps[Result]) -> Result:
    """Run one request's steps to their end. A pass that fails is theirs to handle, else it is raised."""
    given: Passed | Exception | None = None
    while True:
        try:
            wanted = _resume(steps, given)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        given = _evaluate_all({0: wanted})[0]


def together(works: Sequence[Steps[Result]], clocks: Sequence[WorkClock]) -> list[Result]:
    """Run several requests' steps to their ends; passes of a model that are wanted at the same time are one pass.

    Args:
        works: of each request.
        clocks: of each request; stopped while others are served.

    A pass that fails fails for all that share it, unless it is for want of memory. What a request does not handle
    itself is raised.
    """
    done: dict[int, Result] = {}
    turns: dict[int, Passed | Exception | None] = dict.fromkeys(range(len(works)))
    for clock in clocks:
        clock.stop()
    while turns:
        wanted: dict[int, DraftPass] = {}
        for index, given in turns.items():
            _go_on(clocks[index], given)
            try:
                wanted[index] = _resume(works[index], given)
            except StopIteration as end:
                done[index] = end.value
            clocks[index].stop()
        turns = _evaluate_all(wanted)
    for clock in clocks:
        clock.go_on()
    return [done[index] for index in range(len(works))]


def _go_on(clock: WorkClock, given: Passed | Exception | None) -> None:
    if isinstance(given, Passed):
        clock.go_on(given.seconds, given.company)
    else:
        clock.go_on()


def _resume(work: Steps[Result], given: Passed | Exception | None) -> DraftPass:
    if given is None:
        return next(work)
    return work.throw(given) if isinstance(given, Exception) else work.send(given)


def _evaluate_all(wanted: Mapping[int, DraftPass]) -> dict[int, Passed | Exception | None]:
    """One pass for each model; what it gave, or why it failed."""
    groups: dict[int, list[int]] = defaultdict(list)
    for index, each in wanted.items():
        groups[id(each.model)].append(index)
    found: dict[int, Passed | Exception | None] = {}
    for indices in groups.values():
        found.update(zip(indices, _attempt([wanted[index] for index in indices]), strict=True))
    return found


def _attempt(wanted: Sequence[DraftPass]) -> Sequence[Passed | Exception]:
    """What a pass gave, or why it failed; where memory does not suffice for all, as many share one as it does for."""
    try:
        return _evaluate(wanted[0].model, wanted)
    except MemoryLimitError as error:
        half = len(wanted) // 2
        return [*_attempt(wanted[:half]), *_attempt(wanted[half:])] if half else [error]
    except Exception as error:  # noqa: BLE001 (each request says what it does about it)
        return [error] * len(wanted)


def _evaluate(model: Model, wanted: Sequence[DraftPass]) -> list[Passed]:
    start = time.perf_counter()
    batch = [(each.target, each.rows) for each in wanted]
    found = evaluate_batch(model, batch, [each.wanted for each in wanted], within=wanted[0].within)
    seconds = time.perf_counter() - start
    return [Passed(evidence, seconds, len(wanted)) for evidence in found]
