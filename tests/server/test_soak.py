"""A server that is left running: requests of all kinds, one in five cancelled, and nothing is lost or kept.

`BORRADOR_SOAK_S` is how many seconds the long test takes, 1200 by default.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from statistics import mean

import pytest
from tests.batches import eventually
from tests.server.process import ServerProcess, serving_model
from tests.server.soak import EXPECTED, LEAST_SEEN, Soak, describe
from tests.tiny_gguf import write_tiny_model

SOAK_S = float(os.environ.get("BORRADOR_SOAK_S", "1200"))
CLIENTS = 12
MOST_DRIFT = 1.02
WARM_SHARE = 0.3  # of the samples, until the memory that is needed at all is there
WINDOW_SHARE = 0.1
SHORT_S = 6.0


@pytest.fixture
def process(tmp_path: Path) -> Iterator[ServerProcess]:
    """A server that is short of places and of memory for keys and values, so that it refuses and preempts."""
    model = write_tiny_model(tmp_path / "tiny.gguf", context=512, sharpness=2.0)
    options = ("--concurrent", "8", "--waiting", "8", "--cache-bytes", "8m", "--threads", "1")
    with serving_model(model, "-d", "suffix,recycle", *options) as running:
        yield running


def _soak(process: ServerProcess, duration_s: float) -> list[int]:
    """The server's memory in bytes, again and again."""
    soak = Soak(process.url, CLIENTS, seed=int(duration_s))
    memory: list[int] = []
    files = process.open_files()
    soak.run(duration_s, lambda: memory.append(process.resident_bytes()), every_s=min(1.0, duration_s / 100))
    _check_clients(soak)
    _check_counters(process, soak)
    eventually(lambda: process.open_files() <= files + 2)  # of which one is the connection that asks for the numbers
    return memory


def _check_clients(soak: Soak) -> None:
    assert not soak.faults, describe(soak)
    assert len(soak.watched) == 1, describe(soak)
    assert min(soak.seen[what] for what in EXPECTED) >= LEAST_SEEN, describe(soak)


def _check_counters(process: ServerProcess, soak: Soak) -> None:
    eventually(lambda: process.stats()["reserved"] == 0)
    eventually(lambda: process.answers() == process.stats()["requests_admitted"])
    now = process.stats()
    ended = now["requests_finished"] + now["requests_cancelled"] + now["requests_failed"]
    assert now["requests_admitted"] == ended == process.answers(), now
    assert now["requests_finished"] >= soak.seen["answered"]
    assert now["requests_failed"] == now["running"] == now["waiting"] == now["reserved"] == 0
    assert now["requests_cancelled"] > 0
    fates = now["draft_tokens_accepted"] + now["draft_tokens_rejected"] + now["draft_tokens_ignored"]
    assert now["draft_tokens_proposed"] == fates > 0
    assert now["cache_bytes_used"] <= now["cache_bytes_limit"]
    assert now["is_healthy"]


def test_nothing_is_lost_while_one_client_in_five_leaves(process: ServerProcess) -> None:
    _soak(process, SHORT_S)


@pytest.mark.long
def test_memory_stays_as_it_is_while_one_client_in_five_leaves(process: ServerProcess) -> None:
    memory = _soak(process, SOAK_S)
    count = len(memory)
    warm = mean(memory[int(WARM_SHARE * count) : int((WARM_SHARE + WINDOW_SHARE) * count)])
    end = mean(memory[int((1.0 - WINDOW_SHARE) * count) :])
    assert end <= MOST_DRIFT * warm, [round(size / 2**20, 1) for size in memory[:: max(count // 40, 1)]]
