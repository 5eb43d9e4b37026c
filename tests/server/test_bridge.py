"""What stands between clients and the scheduler: states of the server, pings, clients that do not read, outcomes."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import httpx
import pytest
from tests.batches import PATIENCE_S, eventually
from tests.scripted import OracleDrafter
from tests.server.rig import Rig, serve, serve_app
from tests.server.writing import writing_llm, written_of

from borrador.errors import MemoryLimitError
from borrador.sampling.shaping import Shaper
from borrador.server.app import create_app
from borrador.server.bridge import Bridge
from borrador.server.config import ServerConfig

PATH = "/v1/chat/completions"
HELLO = [{"role": "user", "content": "Hi"}]


@pytest.fixture
def slow() -> Iterator[Rig]:
    """A server with one place to write in, which often shows a sign of life to those that wait for it."""
    with serve(writing_llm("slow", pass_s=0.05), ServerConfig(ping_s=0.1, concurrent=1, waiting=2)) as running:
        yield running


@pytest.fixture
def endless() -> Iterator[Rig]:
    """The same with answers that no test waits for."""
    with serve(writing_llm("slow " * 800, pass_s=0.05), ServerConfig(ping_s=0.1, concurrent=1, waiting=2)) as running:
        yield running


@contextmanager
def streaming(rig: Rig) -> Iterator[httpx.Response]:
    """A stream, of which its reader has read nothing but the status."""
    with rig.client.stream("POST", PATH, json={"messages": HELLO, "stream": True}) as response:
        assert response.status_code == 200
        yield response


def test_nothing_but_health_works_until_the_model_is_loaded() -> None:
    bridge = Bridge(ServerConfig())
    with serve_app(create_app(bridge)) as url, httpx.Client(base_url=url, trust_env=False) as client:
        assert client.get("/health").status_code == 200
        ready = client.get("/health/ready")
        assert (ready.status_code, ready.json()) == (503, {"status": "loading"})
        for path, body in ((PATH, {"messages": HELLO}), ("/tokenize", {"prompt": "a"})):
            response = client.post(path, json=body)
            assert (response.status_code, response.json()["error"]["code"]) == (503, "loading")
            assert response.headers["retry-after"] == "1"
    bridge.close()


def test_a_server_that_ends_takes_no_more_but_finishes_what_it_has(slow: Rig) -> None:
    with slow.client.stream("POST", PATH, json={"messages": HELLO, "stream": True}) as response:
        slow.bridge.end()
        refused = slow.post(PATH, messages=HELLO)
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "ending")
        assert slow.client.get("/health/ready").json() == {"status": "ending"}
        assert response.read().endswith(b"data: [DONE]\n\n")


def test_a_stream_that_waits_shows_signs_of_life(endless: Rig) -> None:
    with streaming(endless) as first, streaming(endless) as second:
        told = second.iter_raw()
        assert next(told).startswith(b": ping\n\n")
        first.close()
        assert any(b'"role":"assistant"' in part for part in told)


def test_a_request_beyond_the_queue_is_refused_before_it_is_looked_at(endless: Rig) -> None:
    with streaming(endless), streaming(endless), streaming(endless):
        response = endless.post(PATH, messages=[{"role": "assistant", "content": None}])
    assert (response.status_code, response.json()["error"]["type"]) == (429, "rate_limit_error")
    assert int(response.headers["retry-after"]) >= 1


def test_an_answer_that_runs_out_of_time_ends_as_it_is() -> None:
    with serve(writing_llm("slow " * 50, pass_s=0.02), ServerConfig(request_timeout_s=0.3)) as running:
        choice = running.post(PATH, messages=HELLO).json()["choices"][0]
        assert choice["finish_reason"] == "timeout"
        assert ("slow " * 50).startswith(choice["message"]["content"])
        assert [outcome.reason for outcome in running.outcomes] == ["timeout"]


class FailingDrafter(OracleDrafter):
    """Fails when it is opened, or when the answer has so many tokens and it may."""

    def __init__(self, after: int, error: Exception) -> None:
        super().__init__(self._propose)
        self.after = after
        self.error = error
        self.may_fail = threading.Event()

    def open(self, shaper: Shaper, /) -> OracleDrafter:
        if self.after == 0:
            raise self.error
        return super().open(shaper)

    def _propose(self, context: Sequence[int]) -> Sequence[int]:
        if written_of(context) >= self.after:
            assert self.may_fail.wait(PATIENCE_S)
            raise self.error
        return ()


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (MemoryLimitError("the cache must fit into 1 GiB, it needs 2", "Shorten the prompt."), 503, "memory_limit"),
        (RuntimeError("secret 0x7f00"), 500, "internal_error"),
    ],
)
def test_an_error_has_a_status_before_the_stream_and_an_event_in_it(error: Exception, status: int, code: str) -> None:
    for after, streamed in ((0, True), (0, False), (3, False), (3, True)):
        drafter, begins = FailingDrafter(after, error), after == 3 and streamed
        with serve(writing_llm("some answer", drafter)) as running:
            if not begins:
                drafter.may_fail.set()
            with running.client.stream("POST", PATH, json={"messages": HELLO, "stream": streamed}) as response:
                drafter.may_fail.set()
                response.read()
            assert "secret" not in response.text
            if begins:
                assert response.status_code == 200
                event = response.text.strip().rsplit("\n\n", 1)[1]
                assert event.startswith("event: error\ndata: ")
                assert "[DONE]" not in response.text
                assert json.loads(event.split("data: ")[1])["error"]["code"] == code
            else:
                assert response.status_code == status
                assert response.json()["error"]["code"] == code
            assert [outcome.reason for outcome in running.outcomes] == ["error"]


def test_a_client_that_never_reads_is_left_alone_and_frees_its_seat() -> None:
    config = ServerConfig(unsent_bytes=20_000)
    with serve(writing_llm("many words " * 3000, context_length=40_000), config) as running:
        body = json.dumps({"messages": HELLO, "stream": True, "logprobs": True, "top_logprobs": 20}).encode()
        with socket.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect(running.address)
            client.sendall(f"POST {PATH} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
            eventually(lambda: bool(running.outcomes))
            running.settle()
        assert [outcome.reason for outcome in running.outcomes] == ["cancelled"]
        assert running.outcomes[0].stats.completion_tokens < 33_000
        assert running.post(PATH, messages=HELLO, max_tokens=3).status_code == 200


def test_every_answer_has_an_outcome(slow: Rig) -> None:
    slow.post(PATH, messages=HELLO, n=2, seed=1)
    slow.post(PATH, messages=HELLO, max_tokens=2)
    slow.settle()
    assert [outcome.reason for outcome in slow.outcomes] == ["stop", "stop", "length"]
    for outcome in slow.outcomes:
        assert outcome.first_s is not None
        assert 0 < outcome.first_s <= outcome.total_s
        assert outcome.stats.completion_tokens in (2, 4)
