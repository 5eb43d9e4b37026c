"""Whose turn it is, and on what cache: first come, first served, as far as memory goes."""

from __future__ import annotations

import time
from collections.abc import Sequence

from borrador.engine.cache_room import CacheRoom
from borrador.engine.line import Line, Request, Ticket
from borrador.engine.member import Member
from borrador.errors import MemoryLimitError
from borrador.models.prefix import CachedSequence, SequencePool, common_prefix
from borrador.models.target import Model


class Admission:
    """Requests that wait for their turn. One is admitted when its context, less what another holds of it, fits into
    memory beside those that are written.

    Args:
        model: of all of them.
        pool: sequences on it.
    """

    def __init__(self, model: Model, pool: SequencePool) -> None:
        self._pool = pool
        self._line = Line()
        self._room = CacheRoom(model, pool)
        self._is_full = False  # memory is, until a request ends

    def __len__(self) -> int:
        return len(self._line)

    def require_room(self, request: Request) -> None:
        """Raise MemoryLimitError where there is no room for a request's longest answer even if it is alone."""
        tokens = len(request.prompt) + request.capacity
        if not self._room.can_ever_hold(tokens):
            raise MemoryLimitError(
                f"prompt and answer must fit into the memory for keys and values, {tokens} tokens do not",
                "Shorten the prompt, or ask for fewer tokens.",
            )

    def add(self, ticket: Ticket) -> None:
        """Let a request wait for its turn."""
        self._line.add(ticket)

    def take_out(self, key: int) -> Ticket | None:
        """Let a request wait no more; None where it does not."""
        ticket = next((ticket for ticket in self._line if ticket.key == key), None)
        if ticket is not None:
            self._line.remove(ticket)
            self._is_full = False
        return ticket

    def expired(self) -> list[Ticket]:
        """The requests whose time is over; they wait no more."""
        now = time.monotonic()
        found = [ticket for ticket in self._line if ticket.deadline <= now]
        for ticket in found:
            self._line.remove(ticket)
            self._is_full = False
        return found

    def next(self, live: Sequence[Member]) -> Ticket | None:
        """The request whose turn it is beside those that are written; None where there is none, or no memory."""
        return self._line.pop() if len(self._line) and not (self._is_full and live) else None

    def open(self, ticket: Ticket, live: Sequence[Member]) -> Member | None:
        """Begin to write a request; None where the others leave it no room, and it is put back.

        Raises:
            MemoryLimitError: there are no others, and yet no room.
        """
        try:
            member = self._open(ticket, live)
        except MemoryLimitError:
            if not live:
                raise
            member = None
        if member is None:
            self.put_back(ticket)
        return member

    def put_back(self, ticket: Ticket) -> None:
        """Let a request wait until another one has ended, and then be the next."""
        self._line.put_back(ticket)
        self._is_full = True

    def release(self, sequence: CachedSequence) -> None:
        """Take back the sequence of a request that has ended."""
        self._pool.give_back(sequence)
        self._is_full = False

    def preempt(self, member: Member) -> None:
        """Let a request wait again that is written; its cache is given up, and its context evaluated again later."""
        sequence = member.session.sequence
        sequence.clear()
        self._pool.give_back(sequence)
        self.put_back(member.ticket.parked(member.session))

    def reclaim(self) -> bool:
        """Drop an idle sequence; whether there was one."""
        return self._pool.reclaim()

    def _open(self, ticket: Ticket, live: Sequence[Member]) -> Member | None:
        before_last = ticket.context[:-1]  # the last token is always evaluated
        related = [elder for elder in live if elder.ticket.namespace == ticket.namespace]
        elders = [(elder, common_prefix(elder.session.state.context, before_last)) for elder in related]
        sequence = self._pool.take(ticket.context, ticket.namespace)
        try:
            held = max([sequence.target.length, *(shared for _, shared in elders)])
            growth = [(held, len(ticket.context)), *(member.session.growth for member in live)]
            if live and not self._room.has(growth):
                self._pool.give_back(sequence)
                return None
            session = ticket.open(sequence)
            session.begin()
        except BaseException:
            sequence.clear()
            self._pool.give_back(sequence)
            raise
        return Member(ticket, session, elders)
