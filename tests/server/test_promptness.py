"""How soon a server answers while it is attacked or overrun, in a process of its own. These times are for a machine
that does nothing else."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from statistics import median, quantiles

import pytest
from tests.server.live import exchange, request
from tests.server.process import ServerProcess, serving_model
from tests.server.test_whole import BAD_BODIES
from tests.tiny_gguf import write_tiny_model

pytestmark = pytest.mark.long

PATH = "/v1/chat/completions"
MOST_LAG_S = 0.05
MOST_REFUSAL_S = 0.1
PROBES = 300
SLOWEST = (
    "10,000 deep",
    "5 MB of Unicode",
    "100,000 biases",
    "a text beyond the context",
    "messages beyond the context",
)


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    model = write_tiny_model(tmp_path_factory.mktemp("models") / "tiny.gguf", context=512)
    with serving_model(model, "--threads", "1") as running:
        yield running


def _post(port: int, body: bytes) -> float:
    """Seconds until it was refused."""
    start = time.monotonic()
    reply = exchange(port, request(PATH, f"Content-Length: {len(body)}", method="POST") + body)
    assert 400 <= reply.status < 500
    return time.monotonic() - start


def _health(port: int) -> float:
    start = time.monotonic()
    assert exchange(port, request("/health")).status == 200
    return time.monotonic() - start


def test_every_bad_body_is_refused_in_a_tenth_of_a_second(process: ServerProcess) -> None:
    port = process.address[1]
    took = {name: median(_post(port, body) for _ in range(5)) for name, body in BAD_BODIES.items()}
    assert {name: seconds for name, seconds in took.items() if seconds > MOST_REFUSAL_S} == {}


def test_the_event_loop_lags_less_than_50_ms_behind_bad_bodies(process: ServerProcess) -> None:
    """What waits for the loop waits as long as it lags; a probe that opens a connection waits for it several times."""
    port, stop = process.address[1], threading.Event()
    bodies = [BAD_BODIES[name] for name in SLOWEST]

    def attack() -> None:
        while not stop.is_set():
            for body in bodies:
                _post(port, body)

    with ThreadPoolExecutor(4) as pool:
        attackers = [pool.submit(attack) for _ in range(4)]
        took = []
        for _ in range(PROBES):
            took.append(_health(port))
            time.sleep(0.01)
        stop.set()
        for attacker in attackers:
            attacker.result()
    assert quantiles(took, n=100)[-1] < MOST_LAG_S, sorted(took)[-10:]
