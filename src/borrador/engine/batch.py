"""Requests that are decoded together: in every step one pass of the target serves all of them.

A request's answer does not depend on the others. What one of them suffers, an error or a cancellation, ends that one
alone; whatever happens, every cache ends at its last committed token.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator, Sequence

from borrador.engine.admission import Admission
from borrador.engine.arrivals import Arrivals
from borrador.engine.candidates import Load, PassCost
from borrador.engine.costs import behind
from borrador.engine.line import Request, Ticket
from borrador.engine.member import Member
from borrador.engine.pace import Purse
from borrador.engine.progress import Census
from borrador.engine.progress import Progress as Progress
from borrador.engine.reading import ReadingPace
from borrador.engine.round import Times
from borrador.engine.session import ObservePass
from borrador.engine.shared_pass import verify, withdraw_drafts
from borrador.engine.sharing import Sharing
from borrador.engine.speeds import Speeds, Step
from borrador.models.prefix import SequencePool
from borrador.models.target import CacheUsage, Model
from borrador.types import Draft, GenerationStats

_log = logging.getLogger("borrador")


class Batch:
    """Writes the answers of requests that are added to it, a step at a time.

    Args:
        model: the target of all of them.
        pool: sequences on it, one for each request that is written.
        limit: requests written at a time; the others wait for their turn.
        observe_pass: told rows, seconds and load of passes that decode.
        pass_s: T(m), where drafts are chosen by it.
        longest_s: seconds that a pass may take for the sake of prompts, where others are written and wait for it.

    Attributes:
        census: what was evaluated.
        speeds: of writing.
    """

    def __init__(
        self,
        model: Model,
        pool: SequencePool,
        limit: int,
        observe_pass: ObservePass,
        pass_s: PassCost | None = None,
        *,
        longest_s: float = math.inf,
    ) -> None:
        self._model = model
        self._limit = limit
        self._observe_pass = observe_pass
        self._pass_s = pass_s
        self._waiting = Admission(model, pool)
        self._reading = ReadingPace(longest_s)
        self._live: list[Member] = []
        self._arrivals = Arrivals()
        self._purse = Purse()
        self._stats: dict[int, GenerationStats] = {}
        self.census = Census()
        self.speeds = Speeds()

    @property
    def is_busy(self) -> bool:
        """There is a request whose answer has not ended."""
        return bool(self._waiting or self._live)

    @property
    def cache_usage(self) -> CacheUsage:
        """Memory that keys and values take, of idle sequences too."""
        return self._model.cache_usage()

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
        self._arrivals.note(self._live)
        self._waiting.add(Ticket(key=key, request=request, namespace=namespace, deadline=deadline))

    def require_room(self, request: Request) -> None:
        """Raise MemoryLimitError where there is no room for a request's longest answer even if it is alone."""
        self._waiting.require_room(request)

    def cancel(self, key: int) -> bool:
        """End a request between two steps, wherever it stands; the others go on. Whether there was one."""
        ticket = self._waiting.take_out(key)
        if ticket is not None:
            self._leave(ticket)
            return True
        member = next((member for member in self._live if member.key == key), None)
        if member is not None:
            self._end(member)
        return member is not None

    def forget(self, key: int) -> None:
        """Drop the statistics of a request that has ended."""
        self._stats.pop(key, None)

    def close(self) -> None:
        """End all requests. Safe to call twice."""
        while (ticket := self._waiting.next(())) is not None:
            self._leave(ticket)
        while self._live:
            self._end(self._live[-1])

    def stats(self, key: int) -> GenerationStats:
        """What a request's answer cost so far. A shared step counts in full for each request that it served."""
        live = (member.session.stats for member in list(self._live) if member.key == key)
        return next(live, None) or self._stats.get(key) or GenerationStats()

    def step(self) -> list[Progress]:
        """Admit requests whose turn has come, and bring all of them on by one pass. An interrupt ends them all."""
        start = time.perf_counter()
        try:
            told = [*self._expire(), *self._admit()]
            read, divided = self._divide_rows(), time.perf_counter()
            sharing = self._draft(read)
            rows, drafted = self.census.count(self._live), time.perf_counter()
            is_whole = verify(self._model, self._live, self._make_room)
            forwarded = time.perf_counter()
            if is_whole and sharing is not None:
                self._reading.observe(rows, read, forwarded - drafted)
                self._learn(sharing, forwarded - drafted)
            drafts = any(member.session.state.proposer.drafts for member in self._playing())
        except BaseException:
            self._abandon()
            raise
        times = Times(start, drafted, forwarded, time.perf_counter())
        told += self._conclude(times)
        if is_whole and not read and sharing is not None and sharing.load.requests:
            tokens = sum(progress.tokens for progress in told)
            self._measure(times, drafted - divided, sharing.load, tokens, rows, drafts=drafts)
        return told

    def _measure(self, times: Times, draft_s: float, load: Load, tokens: int, rows: int, *, drafts: bool) -> None:
        """Learn how fast answers were written by a step that read nothing."""
        step = Step(
            requests=load.requests,
            tokens=tokens,
            total_s=times.end - times.start,
            draft_s=draft_s,
            pass_s=times.forwarded - times.drafted,
            plain_pass_s=self._pass_s and behind(self._pass_s, load)(load.requests),
            drafts=drafts,
            verifies=rows > load.rows,
        )
        self.speeds.observe(step)

    def _expire(self) -> Iterator[Progress]:
        """End the answers of requests that waited too long."""
        for ticket in self._waiting.expired():
            event = ticket.expire()
            self._leave(ticket)
            yield Progress(ticket.key, (event,))

    def _leave(self, ticket: Ticket) -> None:
        """Let a request go that does not wait any more, and is not written."""
        self._stats[ticket.key] = ticket.stats
        _safely(ticket.leave)

    def _admit(self) -> Iterator[Progress]:
        while len(self._live) < self._limit and (ticket := self._waiting.next(self._live)) is not None:
            try:
                member = self._waiting.open(ticket, self._live)
            except Exception as error:  # noqa: BLE001 - a request fails alone, whatever it is
                self._leave(ticket)
                yield Progress(ticket.key, error=error)
            else:
                self._live += [member] if member is not None else []

    def _divide_rows(self) -> int:
        """Begin the round of every answer, and give the rows that are left to prompts in their order; how many."""
        left = self._reading.rows(sum(member.play() for member in self._live if not member.is_reading))
        read = 0
        for member in self._live:
            if member.is_reading and not member.waits():
                read += member.read(left - read)
        return read

    def _draft(self, read: int) -> Sharing | None:
        """As `_propose`; None where that fails, and nobody drafts."""
        try:
            sharing = self._propose(read)
        except Exception as error:  # noqa: BLE001 - answers go on without drafts
            _log.warning("drafting failed, and a step goes without it: %r", error)
            sharing = None
            for member in self._playing():
                member.place(Draft())
        return sharing

    def _make_room(self) -> bool:
        """Where a pass lacks memory: drop an idle sequence, else all drafts, else the youngest request of several."""
        if self._waiting.reclaim() or withdraw_drafts(self._live):
            return True
        if len(self._live) < 2:
            return False
        youngest = max(self._live, key=lambda member: member.key)
        self._depart(youngest)
        self._stats[youngest.key] = youngest.session.stats
        self._waiting.preempt(youngest)
        self.census.preemptions += 1
        return True

    def _propose(self, read: int) -> Sharing:
        """Fill in the rows of all rounds; how they share the pass."""
        playing = self._playing()
        pieces = sum(len(member.rows.tokens) for member in self._live if member.rows is not None)
        load = _load_of(playing, pieces)
        draining = not (self._waiting or self._arrivals.go_on)
        sharing = Sharing(load, self._pass_s, read, draining=draining, purse=self._purse)
        sharing.draft(playing)
        return sharing

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
        self._depart(member)
        self._stats[member.key] = member.session.stats
        if not _safely(member.session.end):
            member.session.sequence.clear()
        self._waiting.release(member.session.sequence)

    def _depart(self, member: Member) -> None:
        self._live.remove(member)
        member.is_gone, member.elders = True, ()


def _safely(work: Callable[[], None]) -> bool:
    """Do what a request's drafters may get wrong, at its end; whether it was done."""
    try:
        work()
    except Exception:  # noqa: BLE001 - whatever it is, the others go on
        _log.exception("a request could not be ended as it should")
        return False
    return True


def _load_of(playing: Sequence[Member], pieces: int) -> Load:
    """Of the pass over these requests' rounds, and over so many rows of prompts."""
    rows = pieces + sum(member.round.pending for member in playing if member.round is not None)
    lengths = [member.target.length for member in playing]
    return Load(rows, len(playing), sum(lengths) / max(len(lengths), 1))
