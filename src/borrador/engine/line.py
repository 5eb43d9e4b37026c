"""Requests that wait for their turn: namespaces take turns, and within one the first to come is the first to go."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator
from dataclasses import dataclass

from borrador.engine.member import Request


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Waiting:
    """A request that waits.

    Attributes:
        key: names it.
        request: what it asks for.
        namespace: whose it is.
        deadline: when its answer must end, by `time.monotonic`.
    """

    key: int
    request: Request
    namespace: str
    deadline: float


class Line:
    """Requests in the order in which their turn comes."""

    def __init__(self) -> None:
        self._lines: OrderedDict[str, deque[Waiting]] = OrderedDict()

    def __len__(self) -> int:
        return sum(map(len, self._lines.values()))

    def __iter__(self) -> Iterator[Waiting]:
        for line in self._lines.values():
            yield from line

    def add(self, waiting: Waiting) -> None:
        """Let a request wait behind all others of its namespace."""
        self._lines.setdefault(waiting.namespace, deque()).append(waiting)

    def put_back(self, waiting: Waiting) -> None:
        """Let a request be the next, whose turn had come too early."""
        self._lines.setdefault(waiting.namespace, deque()).appendleft(waiting)
        self._lines.move_to_end(waiting.namespace, last=False)

    def pop(self) -> Waiting:
        """The next one; the turn then goes to the next namespace. There must be one."""
        namespace, line = self._lines.popitem(last=False)
        waiting = line.popleft()
        if line:
            self._lines[namespace] = line
        return waiting

    def remove(self, waiting: Waiting) -> None:
        """Take a request out of the line, wherever it stands."""
        line = self._lines[waiting.namespace]
        line.remove(waiting)
        if not line:
            del self._lines[waiting.namespace]

    def clear(self) -> None:
        self._lines.clear()
