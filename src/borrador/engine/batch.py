"""Requests that are decoded together: in every step one pass of the target serves all of them.

A request's answer does not depend on the others. What one of them suffers, an error or a cancellation, ends that one
alone; whatever happens, every cache ends at its last committed token.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from borrador.engine.candidates import Load, PassCost
from borrador.engine.line import Line, Waiting
from borrador.engine.member import Member, Request
from borrador.engine.round import Times
from borrador.engine.session import ObservePass, closing_event
from borrador.engine.sharing import Sharing
from borrador.errors import MemoryLimitError
from borrador.models.passes import evaluate_batch
from borrador.models.prefix import SequencePool, common_prefix
from borrador.models.target import Model, Rows
from borrador.types import GenerationEvent, GenerationStats

STEP_ROWS = 256  # as many as the native engine takes through its layers together: of more, weights are read twice


@dataclass(frozen=True, slots=True)
class Progress:
    """What a step brought for one request.

    Attributes:
        key: of the request.
        events: of its answer.
        error: why it failed, and ended; None where it did not.
    """

    key: int
    events: Sequence[GenerationEvent] = ()
    error: Exception | None = None


@dataclass(slots=True)
class Census:
    """Passes so far, and their rows.

    Attributes:
        passes: of the target.
        rows: in all of them.
        prompt_rows: of these, pieces of prompts that did not yet lead to a token.
        draft_rows: of these, tokens of drafts.
    """

    passes: int = 0
    rows: int = 0
    prompt_rows: int = 0
    draft_rows: int = 0


class Batch:
    """Writes the answers of requests that are added to it, a step at a time.

    Args:
        model: the target of all of them.
        pool: sequences on it, one for each request that is written.
        limit: requests written at a time; the others wait for their turn.
        observe_pass: told rows, seconds and load of passes that decode.
        pass_s: T(m), where drafts are chosen by it.

    Attributes:
        census: what was evaluated.
    """

    def __init__(
        self, model: Model, pool: SequencePool, limit: int, observe_pass: ObservePass, pass_s: PassCost | None = None
    ) -> None:
        self._model = model
        self._pool = pool
        self._limit = limit
        self._observe_pass = observe_pass
        self._pass_s = pass_s
        self._waiting = Line()
        self._live: list[Member] = []
        self._stats: dict[int, GenerationStats] = {}
        self.census = Census()

    @property
    def is_busy(self) -> bool:
        """There is a request whose answer has not ended."""
        return bool(self._waiting or self._live)

    @property
    def running(self) -> int:
        """Requests that are written."""
        return len(self._live)

    @property
    def waiting(self) -> int:
        """Requests that wait for their turn."""
        return len(self._waiting)

    def add(self, key: int, request: Request, *, namespace: str = "", deadline: float = math.inf) -> None:
        """Let a request wait for its turn.

        Args:
            key: no other request may have it.
            request: what to write.
            namespace: requests share nothing with those of other namespaces, and namespaces take turns.
            deadline: when its answer must end, by `time.monotonic`.
        """
        self._waiting.add(Waiting(key=key, request=request, namespace=namespace, deadline=deadline))

    def cancel(self, key: int) -> bool:
        """End a request between two steps, wherever it stands; the others go on. Whether there was one."""
        for waiting in [waiting for waiting in self._waiting if waiting.key == key]:
            self._leave(waiting)
            return True
        for member in [member for member in self._live if member.key == key]:
            self._end(member)
            return True
        return False

    def forget(self, key: int) -> None:
        """Drop the statistics of a request that has ended."""
        self._stats.pop(key, None)

    def close(self) -> None:
        """End all requests. Safe to call twice."""
        self._waiting.clear()
        while self._live:
            self._end(self._live[-1])

    def stats(self, key: int) -> GenerationStats:
        """What a request's answer cost so far. A shared step counts in full for each request that it served."""
        live = (member.session.stats for member in self._live if member.key == key)
        return self._stats.get(key) or next(live, GenerationStats())

    def step(self) -> list[Progress]:
        """Admit requests whose turn has come, and bring all of them on by one pass. An interrupt ends them all."""
        start = time.perf_counter()
        try:
            told = [*self._expire(), *self._admit()]
            read = self._divide_rows()
            sharing = self._propose(read)
            drafted = time.perf_counter()
            evidence = self._evaluate()
            forwarded = time.perf_counter()
            for member in self._live:
                member.accept(evidence.get(member.key))
            self._learn(sharing, forwarded - drafted)
        except BaseException:
            self._abandon()
            raise
        times = Times(start, drafted, forwarded, time.perf_counter())
        return [*told, *self._conclude(times)]

    def _expire(self) -> Iterator[Progress]:
        """End the answers, not begun yet, of requests that waited too long."""
        now = time.monotonic()
        for waiting in [waiting for waiting in self._waiting if waiting.deadline <= now]:
            self._leave(waiting)
            yield Progress(waiting.key, (closing_event("", "timeout", 0),))

    def _leave(self, waiting: Waiting) -> None:
        self._waiting.remove(waiting)
        self._stats[waiting.key] = GenerationStats(prompt_tokens=len(waiting.request.prompt))

    def _admit(self) -> Iterator[Progress]:
        while self._waiting and len(self._live) < self._limit:
            waiting = self._waiting.pop()
            try:
                self._open(waiting)
            except MemoryLimitError as error:
                if not self._live:
                    yield Progress(waiting.key, error=error)
                else:
                    self._waiting.put_back(waiting)
                    self._limit = len(self._live)
            except Exception as error:  # noqa: BLE001 - a request fails alone, whatever it is
                yield Progress(waiting.key, error=error)

    def _open(self, waiting: Waiting) -> None:
        request = waiting.request
        sequence = self._pool.take(request.prompt)
        try:
            session = request.open(sequence)
        except BaseException:
            self._pool.give_back(sequence)
            raise
        before_last = request.prompt[:-1]  # the last token is always evaluated
        elders = [(elder, common_prefix(elder.session.state.context, before_last)) for elder in self._live]
        member = Member(waiting.key, session, elders, deadline=waiting.deadline)
        self._live.append(member)
        try:
            session.begin()
        except BaseException:
            self._end(member)
            raise

    def _divide_rows(self) -> int:
        """Begin the round of every answer, and give the rows that are left to prompts in their order; how many."""
        left = STEP_ROWS - sum(member.play() for member in self._live if not member.is_reading)
        read = 0
        for member in self._live:
            if member.is_reading and not member.waits():
                read += member.read(left - read)
        return read

    def _propose(self, read: int) -> Sharing:
        """Fill in the rows of all rounds; how they share the pass."""
        playing = self._playing()
        pieces = sum(len(member.rows.tokens) for member in self._live if member.rows is not None)
        sharing = Sharing(_load_of(playing, pieces), self._pass_s, read, draining=not self._waiting)
        sharing.draft(playing)
        return sharing

    def _evaluate(self) -> dict[int, Any]:
        """One pass over all rows; by key what each request asked of it."""
        sharing = [(member, member.rows) for member in self._live if member.rows is not None]
        batch = [(member.target, rows) for member, rows in sharing]
        self._count(sharing)
        found = evaluate_batch(self._model, batch, [member.wanted for member, _ in sharing]) if batch else ()
        return {member.key: evidence for (member, _), evidence in zip(sharing, found, strict=True)}

    def _count(self, sharing: Sequence[tuple[Member, Rows]]) -> None:
        if not sharing:
            return
        census = self.census
        census.passes += 1
        for member, rows in sharing:
            census.rows += len(rows.tokens)
            if member.round is None:
                census.prompt_rows += len(rows.tokens)
            else:
                census.draft_rows += len(member.round.draft.tokens)

    def _learn(self, sharing: Sharing, seconds: float) -> None:
        """Learn what the pass took, and what asking drafters brought."""
        playing, load = self._playing(), sharing.load
        rows = load.rows + sum(len(member.round.draft.tokens) for member in playing if member.round is not None)
        if playing and not sharing.read and load.rows == len(playing):
            self._observe_pass(rows, seconds, load)
        sharing.learn(playing, rows)

    def _conclude(self, times: Times) -> Iterator[Progress]:
        now = time.monotonic()
        for member in list(self._live):
            events = member.conclude(times, now)
            if events or member.error is not None:
                yield Progress(member.key, events, member.error)
            if member.error is not None or member.session.is_finished:
                self._end(member)

    def _playing(self) -> list[Member]:
        return [member for member in self._live if member.round is not None]

    def _abandon(self) -> None:
        for member in self._live:
            member.undo()
        self.close()

    def _end(self, member: Member) -> None:
        self._live.remove(member)
        member.is_gone = True
        self._stats[member.key] = member.session.stats
        try:
            member.session.end()
        finally:
            self._pool.give_back(member.session.sequence)


def _load_of(playing: Sequence[Member], pieces: int) -> Load:
    """Of the pass over these requests' rounds, and over so many rows of prompts."""
    rows = pieces + sum(member.round.pending for member in playing if member.round is not None)
    lengths = [member.target.length for member in playing]
    return Load(rows, len(playing), sum(lengths) / max(len(lengths), 1))
