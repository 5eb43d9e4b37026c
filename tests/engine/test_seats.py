from __future__ import annotations

import threading

import pytest

from borrador.engine.seats import Seats
from borrador.errors import QueueFullError, UsageError


def test_seats_are_counted_when_they_are_reserved() -> None:
    seats = Seats(3)
    first = seats.reserve(2, "")
    with pytest.raises(QueueFullError, match="at most 3 requests may run or wait, 2 do, and 2 more came"):
        seats.reserve(2, "")
    with seats.reserve(1, "x") as other:
        assert (seats.taken, other.namespace) == (3, "x")
    assert seats.taken == 2
    first.use()
    first.release()
    first.release()
    assert seats.taken == 1
    seats.give_back()
    assert seats.taken == 0


def test_a_reservation_serves_no_more_requests_than_it_was_made_for() -> None:
    reservation = Seats(3).reserve(1, "")
    reservation.use()
    with pytest.raises(UsageError, match="as many requests as it was made for"):
        reservation.use()


@pytest.mark.parametrize("count", [0, 4])
def test_more_than_there_ever_are_is_refused(count: int) -> None:
    with pytest.raises(UsageError, match=f"from 1 to 3, got {count}"):
        Seats(3).reserve(count, "")


def test_who_is_refused_is_told_how_long_it_takes_until_seats_are_free(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("borrador.engine.seats.time.monotonic", lambda: now)
    seats = Seats(6)
    seats.reserve(6, "")

    def wait_s(count: int) -> float:
        with pytest.raises(QueueFullError) as refused:
            seats.reserve(count, "")
        return refused.value.retry_after_s

    assert wait_s(2) == 1.0
    for _ in range(4):
        seats.give_back()
        seats.reserve(1, "")
        now += 3.0
    assert wait_s(2) == pytest.approx(2 * 12.0 / 3)
    now += 1000.0
    assert wait_s(1) == 60.0


def test_threads_never_get_more_seats_than_there_are() -> None:
    seats, got = Seats(50), list[int]()

    def reserve() -> None:
        for _ in range(20):
            try:
                seats.reserve(1, "")
            except QueueFullError:
                continue
            got.append(1)

    threads = [threading.Thread(target=reserve) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == seats.taken == 50
