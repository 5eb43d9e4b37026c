"""A server's life from its first moment to its last, in a process of its own."""

from __future__ import annotations

import contextlib
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from tests.batches import PATIENCE_S, eventually
from tests.server.live import exchange, request

_ROOT = Path(__file__).parents[2]
_PATH = "/v1/chat/completions"
_HELLO = [{"role": "user", "content": "Hello"}]
_ENDLESS, _ENDLESS_S = 4000, 1000.0  # tokens, with pauses, and seconds that no test waits for


@dataclass(slots=True)
class Process:
    """A server in a process of its own."""

    popen: subprocess.Popen[str]
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def status(self, path: str) -> int:
        return exchange(self.port, request(path)).status

    def wait_until(self, path: str, status: int) -> None:
        """Wait for this status."""

        def is_there() -> bool:
            with contextlib.suppress(OSError):
                return self.status(path) == status
            return False

        eventually(is_there)

    def go_on(self) -> None:
        """Let it load its model; at the second call, let it write without pauses."""
        assert self.popen.stdin is not None
        self.popen.stdin.write("x")
        self.popen.stdin.flush()

    def end(self, number: int = signal.SIGTERM) -> None:
        self.popen.send_signal(number)

    def code(self) -> int:
        """The exit code, once it has ended."""
        return self.popen.wait(PATIENCE_S)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


@contextlib.contextmanager
def _starting(*, tokens: int = 20, drain_s: float = _ENDLESS_S, port: int = 0) -> Iterator[Process]:
    """A server that has no model yet."""
    port = port or _free_port()
    words = [str(number) for number in (tokens, drain_s, port)]
    popen = subprocess.Popen(
        [sys.executable, "-m", "tests.server.slow_server", *words],
        cwd=_ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with popen:
        try:
            yield Process(popen, port)
        finally:
            popen.kill()


@contextlib.contextmanager
def _running(*, tokens: int = 20, drain_s: float = _ENDLESS_S, port: int = 0) -> Iterator[Process]:
    """A server that is ready, and writes with pauses."""
    with _starting(tokens=tokens, drain_s=drain_s, port=port) as process:
        process.go_on()
        process.wait_until("/health/ready", 200)
        yield process


def _read_stream(url: str) -> str:
    body = {"messages": _HELLO, "stream": True}
    with httpx.stream("POST", url + _PATH, json=body, timeout=PATIENCE_S, trust_env=False) as response:
        return f"{response.status_code} {response.read().decode()}"


@contextlib.contextmanager
def _streams(process: Process, count: int) -> Iterator[list[Future[str]]]:
    """So many streams, all of which have begun."""
    with ThreadPoolExecutor(count) as pool:
        futures = [pool.submit(_read_stream, process.url) for _ in range(count)]
        eventually(lambda: _has_begun(process, count))
        yield futures


def _has_begun(process: Process, count: int) -> bool:
    stats = httpx.get(process.url + "/v1/borrador/stats", timeout=PATIENCE_S, trust_env=False).json()
    return bool(stats["running"] == count and stats["completion_tokens"] >= count)


def test_it_says_where_it_serves_what_and_is_ready_then() -> None:
    with _starting() as process:
        process.go_on()
        process.go_on()
        assert process.popen.stdout is not None
        assert process.popen.stdout.readline() == f"serving slow at {process.url}\n"
        assert process.status("/health/ready") == 200
        assert _read_stream(process.url).startswith("200 ")


def test_while_it_loads_it_is_alive_and_not_ready() -> None:
    with _starting() as process:
        process.wait_until("/health", 200)
        assert process.status("/health/ready") == 503
        assert process.status("/v1/models") == 503
        assert _read_stream(process.url).startswith("503 ")
        assert process.status("/metrics") == 200
        process.go_on()
        process.wait_until("/health/ready", 200)
        assert process.status("/v1/models") == 200


def test_a_signal_while_it_loads_ends_it_at_once() -> None:
    with _starting() as process:
        process.wait_until("/health", 200)
        process.end()
        assert process.code() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_at_a_signal_streams_are_finished_and_others_refused(number: int) -> None:
    with _running(tokens=400) as process, _streams(process, 8) as streams:
        process.end(number)
        process.wait_until("/health/ready", 503)
        status = httpx.get(process.url + "/health/ready", timeout=PATIENCE_S, trust_env=False).json()
        assert status == {"status": "ending"}
        assert process.status("/health") == 200
        assert _read_stream(process.url).startswith("503 ")
        process.go_on()
        told = [stream.result() for stream in streams]
        assert process.code() == 0
    assert all(answer.startswith("200 ") and answer.endswith("data: [DONE]\n\n") for answer in told)
    assert all('"error"' not in answer for answer in told)


def test_streams_that_do_not_end_in_time_are_told_so() -> None:
    with _running(tokens=_ENDLESS, drain_s=0.5) as process, _streams(process, 8) as streams:
        process.end()
        told = [stream.result() for stream in streams]
        assert process.code() == 0
    for answer in told:
        assert answer.startswith("200 ")
        assert '"error": {"message": "the server shut down before this answer was finished' in answer
        assert "[DONE]" not in answer


def test_a_client_that_reads_nothing_does_not_keep_it_from_ending() -> None:
    with _running(tokens=_ENDLESS, drain_s=0.5) as process:
        process.go_on()
        body = b'{"messages": [{"role": "user", "content": "a"}], "stream": true, "max_tokens": 4000}'
        with socket.create_connection(("127.0.0.1", process.port)) as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.sendall(request(_PATH, f"Content-Length: {len(body)}", method="POST") + body)
            time.sleep(1.0)
            process.end()
            assert process.code() == 0


def test_a_second_signal_ends_it_at_once() -> None:
    with _running(tokens=_ENDLESS) as process, _streams(process, 2):
        process.end()
        process.wait_until("/health/ready", 503)
        process.end()
        assert process.code() == 128 + signal.SIGTERM


def test_killed_it_can_be_started_again_at_once() -> None:
    port = _free_port()
    for _ in range(2):
        with _running(tokens=_ENDLESS, port=port) as process, _streams(process, 2):
            process.end(signal.SIGKILL)
            assert process.code() == -signal.SIGKILL
