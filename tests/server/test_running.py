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
from tests.server.live import exchange, request

_ROOT = Path(__file__).parents[2]
_PATH = "/v1/chat/completions"
_HELLO = [{"role": "user", "content": "Hello"}]


@dataclass(slots=True)
class Process:
    """A server in a process of its own."""

    popen: subprocess.Popen[str]
    port: int
    started: float

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def status(self, path: str) -> int:
        return exchange(self.port, request(path)).status

    def wait_until(self, path: str, status: int) -> None:
        """Wait for this status."""
        until = time.monotonic() + 20.0
        while time.monotonic() < until:
            with contextlib.suppress(OSError):
                if self.status(path) == status:
                    return
            time.sleep(0.02)
        raise AssertionError(f"{path} did not come to answer {status}")

    def end(self, number: int = signal.SIGTERM) -> None:
        self.popen.send_signal(number)

    def code(self, within_s: float) -> int:
        """The exit code."""
        return self.popen.wait(within_s)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


@contextlib.contextmanager
def _running(
    *, pass_s: float = 0.02, load_s: float = 0.0, tokens: int = 20, drain_s: float = 10.0, port: int = 0
) -> Iterator[Process]:
    port = port or _free_port()
    words = [str(number) for number in (pass_s, load_s, tokens, drain_s, port)]
    popen = subprocess.Popen(
        [sys.executable, "-m", "tests.server.slow_server", *words],
        cwd=_ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with popen:
        try:
            yield Process(popen, port, time.monotonic())
        finally:
            popen.kill()


def _read_stream(url: str) -> str:
    body = {"messages": _HELLO, "stream": True}
    with httpx.stream("POST", url + _PATH, json=body, timeout=60, trust_env=False) as response:
        return f"{response.status_code} {response.read().decode()}"


@contextlib.contextmanager
def _streams(process: Process, count: int) -> Iterator[list[Future[str]]]:
    """So many streams, all of which have begun."""
    process.wait_until("/health/ready", 200)
    with ThreadPoolExecutor(count) as pool:
        futures = [pool.submit(_read_stream, process.url) for _ in range(count)]
        until = time.monotonic() + 20.0
        while time.monotonic() < until:
            stats = httpx.get(process.url + "/v1/borrador/stats", trust_env=False).json()
            if stats["running"] == count and stats["completion_tokens"] >= count:
                break
            time.sleep(0.02)
        yield futures


def test_it_says_where_it_serves_what_and_is_ready_then() -> None:
    with _running() as process:
        assert process.popen.stdout is not None
        assert process.popen.stdout.readline() == f"serving slow at {process.url}\n"
        assert process.status("/health/ready") == 200
        assert _read_stream(process.url).startswith("200 ")


def test_while_it_loads_it_is_alive_and_not_ready() -> None:
    with _running(load_s=3.0) as process:
        process.wait_until("/health", 200)
        assert process.status("/health/ready") == 503
        assert process.status("/v1/models") == 503
        assert _read_stream(process.url).startswith("503 ")
        assert process.status("/metrics") == 200
        process.wait_until("/health/ready", 200)
        assert process.status("/v1/models") == 200


def test_a_signal_while_it_loads_ends_it_at_once() -> None:
    with _running(load_s=30.0) as process:
        process.wait_until("/health", 200)
        process.end()
        assert process.code(within_s=2.0) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_at_a_signal_streams_are_finished_and_others_refused(number: int) -> None:
    with _running(tokens=60, drain_s=20.0) as process, _streams(process, 8) as streams:
        process.end(number)
        process.wait_until("/health/ready", 503)
        assert httpx.get(process.url + "/health/ready", trust_env=False).json() == {"status": "ending"}
        assert process.status("/health") == 200
        assert _read_stream(process.url).startswith("503 ")
        told = [stream.result() for stream in streams]
        assert process.code(within_s=5.0) == 0
    assert all(answer.startswith("200 ") and answer.endswith("data: [DONE]\n\n") for answer in told)
    assert all('"error"' not in answer for answer in told)


def test_streams_that_do_not_end_in_time_are_told_so() -> None:
    with _running(tokens=4000, drain_s=0.5) as process, _streams(process, 8) as streams:
        start = time.monotonic()
        process.end()
        told = [stream.result() for stream in streams]
        assert process.code(within_s=5.0) == 0
        assert time.monotonic() - start < 0.5 + 3.0
    for answer in told:
        assert answer.startswith("200 ")
        assert '"error": {"message": "answers must end before the server does' in answer
        assert "[DONE]" not in answer


def test_a_client_that_reads_nothing_does_not_keep_it_from_ending() -> None:
    with _running(tokens=4000, pass_s=0.0, drain_s=0.5) as process:
        process.wait_until("/health/ready", 200)
        body = b'{"messages": [{"role": "user", "content": "a"}], "stream": true, "max_tokens": 4000}'
        with socket.create_connection(("127.0.0.1", process.port)) as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.sendall(request(_PATH, f"Content-Length: {len(body)}", method="POST") + body)
            time.sleep(1.0)
            process.end()
            assert process.code(within_s=5.0) == 0


def test_a_second_signal_ends_it_at_once() -> None:
    with _running(tokens=4000, drain_s=30.0) as process, _streams(process, 2):
        process.end()
        process.wait_until("/health/ready", 503)
        process.end()
        assert process.code(within_s=1.0) == 128 + signal.SIGTERM


def test_killed_it_can_be_started_again_at_once() -> None:
    port = _free_port()
    for _ in range(2):
        with _running(tokens=200, port=port) as process:
            process.wait_until("/health/ready", 200)
            assert _read_stream(process.url).endswith("data: [DONE]\n\n")
            with _streams(process, 2):
                process.end(signal.SIGKILL)
                assert process.code(within_s=2.0) == -signal.SIGKILL
