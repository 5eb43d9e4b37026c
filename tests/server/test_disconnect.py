"""A client that leaves frees its slot at once, at any phase, and its neighbours do not notice.

The answer is so long that a slot which is free within a minute was not waited for.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.batches import eventually
from tests.server.rig import Rig, serve
from tests.server.sse import stream, text_of
from tests.server.writing import oracle, writing_llm

from borrador.engine.snapshot import Snapshot
from borrador.server.config import ServerConfig

PATH = "/v1/chat/completions"
ANSWER = "One two three four five six seven eight nine ten. " * 1000
SHORT = 200  # tokens of an answer that is read to its end
PASS_S = 0.004
PHASES = ["queued", "prefill", "decode", "whole", "last chunk"]
LEAVINGS = ["RST", "FIN", "half"]


@pytest.fixture(scope="module")
def slow() -> Iterator[Rig]:
    """A server with two places to write in, and passes that take a while."""
    config = ServerConfig(concurrent=2, waiting=256)
    drafter = oracle(ANSWER.encode(), pause_s=PASS_S / 2)
    with serve(writing_llm(ANSWER, drafter, context_length=1 << 16, pass_s=PASS_S), config) as running:
        yield running


class Client:
    """Speaks HTTP over a socket of its own, and leaves when it likes."""

    def __init__(self, rig: Rig, *, streams: bool, prompt: str = "Hi", **fields: int) -> None:
        messages = [{"role": "user", "content": prompt}]
        body = json.dumps({"messages": messages, "stream": streams, **fields}).encode()
        head = f"POST {PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
        self._socket = socket.create_connection(rig.address)
        self._socket.sendall(head.encode() + body)
        self.received = b""

    def read(self, text: bytes, times: int = 1) -> None:
        """Read until a text was there so often."""
        while self.received.count(text) < times:
            data = self._socket.recv(65536)
            assert data, self.received
            self.received += data

    def leave(self, how: str) -> None:
        if how == "RST":
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        if how == "half":
            self._socket.shutdown(socket.SHUT_WR)
        else:
            self._socket.close()

    def close(self) -> None:
        self._socket.close()


def wait(condition: Callable[[Snapshot], bool], rig: Rig) -> None:
    eventually(lambda: condition(rig.scheduler.snapshot()))


def leave_at(phase: str, how: str, rig: Rig) -> None:
    """Bring a request to a phase, leave, and see its seat become free."""
    told = len(rig.outcomes)
    with ExitStack() as leaving:
        if phase == "queued":
            for _ in range(2):
                ahead = Client(rig, streams=True)
                leaving.callback(ahead.close)
                ahead.read(b"role")
            wait(lambda snapshot: snapshot.running == 2, rig)
        prompt = "word " * 700 if phase == "prefill" else "Hi"
        ends = {"max_tokens": SHORT} if phase == "last chunk" else {}
        client = Client(rig, streams=phase != "whole", prompt=prompt, **ends)
        leaving.callback(client.close)
        before = rig.scheduler.snapshot()
        if phase == "queued":
            wait(lambda snapshot: snapshot.waiting == 1, rig)
        elif phase in ("prefill", "whole"):
            wait(lambda snapshot: snapshot.running > 0, rig)
        elif phase == "decode":
            client.read(b"data: ", times=10)
        else:
            client.read(b'"finish_reason":"length"')
        taken = rig.scheduler.snapshot().reserved
        client.leave(how)
        wait(lambda snapshot: snapshot.reserved < max(taken, 1), rig)
        assert rig.scheduler.snapshot().requests_failed == before.requests_failed
    rig.settle()
    assert {outcome.reason for outcome in rig.outcomes[told:]} == {"length" if ends else "cancelled"}


def check(rig: Rig, rounds: int) -> None:
    for phase in PHASES:
        for how in LEAVINGS:
            for _ in range(rounds):
                leave_at(phase, how, rig)
    snapshot = rig.scheduler.snapshot()
    ended = snapshot.requests_finished + snapshot.requests_cancelled + snapshot.requests_failed
    assert snapshot.requests_admitted == ended
    assert len(rig.outcomes) == snapshot.requests_admitted


@pytest.mark.parametrize("how", LEAVINGS)
@pytest.mark.parametrize("phase", PHASES)
def test_a_seat_is_free_soon_after_its_client_left(slow: Rig, phase: str, how: str) -> None:
    for _ in range(7):
        leave_at(phase, how, slow)


def test_neighbours_get_the_answer_of_a_quiet_server(slow: Rig) -> None:
    def leave_often() -> None:
        while not done.is_set():
            client = Client(slow, streams=True, prompt="word " * 50)
            time.sleep(0.01)
            client.leave("RST")

    done = threading.Event()
    leavers = [threading.Thread(target=leave_often) for _ in range(2)]
    for leaver in leavers:
        leaver.start()
    try:
        messages = [{"role": "user", "content": "Hi"}]
        texts = {text_of(stream(slow, PATH, messages=messages, max_tokens=SHORT)) for _ in range(3)}
    finally:
        done.set()
        for leaver in leavers:
            leaver.join()
    assert texts == {ANSWER[:SHORT]}
    slow.settle()


def left_behind(rig: Rig) -> tuple[int, int, int]:
    """Tasks of the event loop, open files of this process, and bytes of keys and values that requests hold."""
    loop, files = rig.bridge._loop, Path("/proc/self/fd")
    assert loop is not None
    llm = rig.bridge.served.llm
    while llm._sequences.reclaim():  # what is kept for later requests is meant to stay
        pass
    used = llm._model.cache_usage().used_bytes
    return len(asyncio.all_tasks(loop)), len(list(files.iterdir())) if files.exists() else 0, used


@pytest.mark.parametrize("rounds", [1, pytest.param(34, marks=pytest.mark.long)])  # of 15 clients each
def test_clients_that_leave_at_any_phase_leave_nothing_behind(slow: Rig, rounds: int) -> None:
    check(slow, rounds=1)
    before = left_behind(slow)
    check(slow, rounds)
    eventually(lambda: all(now <= then for now, then in zip(left_behind(slow), before, strict=True)))
    assert left_behind(slow)[2] == 0
