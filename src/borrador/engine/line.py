"""Requests before their turn: namespaces take turns, and within one the first to come is the first to go."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from borrador.engine.session import Session, closing_event
from borrador.models.prefix import CachedSequence
from borrador.types import GenerationEvent, GenerationStats


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be written.

    Attributes:
        prompt: its tokens.
        open: starts it on a sequence of its own.
        capacity: the most tokens that its answer may have.
    """

    prompt: Sequence[int]
    open: Callable[[CachedSequence], Session]
    capacity: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ticket:
    """A request in the line, for the first time or, with a session, in the middle of its answer.

    Attributes:
        key: names it.
        request: what it asks for.
        namespace: whose it is.
        deadline: when its answer must end, by `time.monotonic`.
        session: where it was begun and had to make room for others.
    """

    key: int
    request: Request
    namespace: str
    deadline: float
    session: Session | None = None

    @property
    def context(self) -> Sequence[int]:
        """The tokens that its cache must hold."""
        return self.request.prompt if self.session is None else self.session.state.context

    @property
    def stats(self) -> GenerationStats:
        if self.session is not None:
            return self.session.stats
        return GenerationStats(prompt_tokens=len(self.request.prompt))

    def open(self, sequence: CachedSequence) -> Session:
        """Begin on a sequence of its own, or go on there."""
        if self.session is None:
            return self.request.open(sequence)
        self.session.move(sequence)
        return self.session

    def parked(self, session: Session) -> Ticket:
        """The ticket of the same request, once it was begun."""
        return replace(self, session=session)

    def expire(self) -> GenerationEvent:
        """The event that closes its answer, since its time is over."""
        return closing_event("", "timeout", 0) if self.session is None else self.session.expire()

    def leave(self) -> None:
        """Free what it holds besides a cache."""
        if self.session is not None:
            self.session.free()


class Line:
    """Requests in the order in which their turn comes."""

    def __init__(self) -> None:
        self._lines: OrderedDict[str, deque[Ticket]] = OrderedDict()

    def __len__(self) -> int:
        return sum(map(len, self._lines.values()))

    def __iter__(self) -> Iterator[Ticket]:
        for line in self._lines.values():
            yield from line

    def add(self, ticket: Ticket) -> None:
        """Let a request wait behind all others of its namespace."""
        self._lines.setdefault(ticket.namespace, deque()).append(ticket)

    def put_back(self, ticket: Ticket) -> None:
        """Let a request be the next, whose turn had come too early."""
        self._lines.setdefault(ticket.namespace, deque()).appendleft(ticket)
        self._lines.move_to_end(ticket.namespace, last=False)

    def pop(self) -> Ticket:
        """The next one; the turn then goes to the next namespace. There must be one."""
        namespace, line = self._lines.popitem(last=False)
        ticket = line.popleft()
        if line:
            self._lines[namespace] = line
        return ticket

    def remove(self, ticket: Ticket) -> None:
        """Take a request out of the line, wherever it stands."""
        line = self._lines[ticket.namespace]
        line.remove(ticket)
        if not line:
            del self._lines[ticket.namespace]
