"""How many requests there may be at a time, counted before anything is done for them."""

from __future__ import annotations

import threading
import time
from collections import deque
from types import TracebackType

from borrador.errors import QueueFullError, UsageError

_RECENT = 32  # seats given back, of which the pace is that of those to come
_LONGEST_S = 60.0
_SHORTEST_S = 1.0


class Reservation:
    """Seats for requests that are about to be made; as a context manager it gives back those that were not used.

    Args:
        seats: gave them.
        count: how many.
        namespace: whose the requests are.
    """

    def __init__(self, seats: Seats, count: int, namespace: str) -> None:
        self.namespace = namespace
        self._seats = seats
        self._left = count
        self._lock = threading.Lock()

    def use(self) -> None:
        """Let a request have one of the seats until `Seats.give_back`. Raises UsageError where none is left."""
        with self._lock:
            if self._left < 1:
                raise UsageError("a reservation serves as many requests as it was made for", "Reserve again.")
            self._left -= 1

    def release(self) -> None:
        """Give back the seats that no request has. Safe to call twice."""
        with self._lock:
            count, self._left = self._left, 0
        self._seats.give_back(count, served=False)

    def __enter__(self) -> Reservation:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


class Seats:
    """Counts requests that are written, wait or are prepared. Safe to use from several threads.

    Args:
        limit: the most at a time.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._taken = 0
        self._lock = threading.Lock()
        self._served: deque[float] = deque(maxlen=_RECENT)

    @property
    def taken(self) -> int:
        return self._taken

    def reserve(self, count: int, namespace: str) -> Reservation:
        """Seats for so many requests.

        Raises:
            QueueFullError: there are not so many now.
            UsageError: there never are.
        """
        if not 1 <= count <= self._limit:
            raise UsageError(f"requests at a time must be from 1 to {self._limit}, got {count}", "Ask for fewer.")
        with self._lock:
            missing = self._taken + count - self._limit
            if missing > 0:
                raise QueueFullError(
                    f"at most {self._limit} requests may run or wait, {self._taken} do, and {count} more came",
                    "Try again later.",
                    self._wait_s(missing),
                )
            self._taken += count
        return Reservation(self, count, namespace)

    def give_back(self, count: int = 1, *, served: bool = True) -> None:
        """Let others have seats; `served` ones count for the pace at which they become free."""
        with self._lock:
            self._taken -= count
            if served:
                self._served.extend([time.monotonic()] * count)

    def _wait_s(self, missing: int) -> float:
        """Until so many seats are free, at the pace of the last ones."""
        if len(self._served) < 2:
            return _SHORTEST_S
        seconds = (time.monotonic() - self._served[0]) / (len(self._served) - 1)
        return min(max(missing * seconds, _SHORTEST_S), _LONGEST_S)
