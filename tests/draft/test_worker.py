from __future__ import annotations

import threading
import time

import pytest
from tests.batches import PATIENCE_S, eventually

from borrador.draft.worker import Worker


def spin_forever() -> None:
    while True:
        pass


def test_results_and_errors_come_back_from_the_thread() -> None:
    worker = Worker("test")
    assert worker.call(divmod, 7, 2, within_s=PATIENCE_S) == (3, 1)
    assert worker.call(lambda: threading.current_thread().name, within_s=PATIENCE_S) == "test"
    with pytest.raises(ZeroDivisionError):
        worker.call(divmod, 7, 0, within_s=PATIENCE_S)
    assert worker.call(len, "abc", within_s=PATIENCE_S) == 3
    worker.close()
    worker.close()


def test_a_call_that_does_not_end_is_given_up_and_its_thread_stops() -> None:
    worker = Worker("hangs")
    start = time.perf_counter()
    with pytest.raises(TimeoutError, match=r"longer than 0\.05 s"):
        worker.call(spin_forever, within_s=0.05)
    assert time.perf_counter() - start < PATIENCE_S
    eventually(lambda: all(thread.name != "hangs" for thread in threading.enumerate()))
