from __future__ import annotations

import threading
import time

import pytest

from borrador.draft.worker import Worker


def spin_forever() -> None:
    while True:
        pass


def test_results_and_errors_come_back_from_the_thread() -> None:
    worker = Worker("test")
    assert worker.call(divmod, 7, 2, within_s=10.0) == (3, 1)
    assert worker.call(lambda: threading.current_thread().name, within_s=10.0) == "test"
    with pytest.raises(ZeroDivisionError):
        worker.call(divmod, 7, 0, within_s=10.0)
    assert worker.call(len, "abc", within_s=10.0) == 3
    worker.close()
    worker.close()


def test_a_call_that_does_not_end_is_given_up_and_its_thread_stops() -> None:
    worker = Worker("hangs")
    start = time.perf_counter()
    with pytest.raises(TimeoutError, match=r"longer than 0\.05 s"):
        worker.call(spin_forever, within_s=0.05)
    assert time.perf_counter() - start < 5.0
    deadline = time.monotonic() + 10.0
    while any(thread.name == "hangs" for thread in threading.enumerate()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
