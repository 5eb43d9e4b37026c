"""The whole server against those who mean it harm: without a key, with bad bodies, too slow, or too many."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from statistics import median

import httpx
import pytest
from starlette.routing import Route
from tests.batches import eventually
from tests.server.live import Reply, connect, exchange, read_reply, request
from tests.server.whole import Whole, whole
from tests.server.writing import oracle, writing_llm

from borrador.engine.llm import LLM
from borrador.server.config import ServerConfig
from borrador.server.service import Service

_PATH = "/v1/chat/completions"
_CHAT = {"messages": [{"role": "user", "content": "Hello"}]}
_CHUNKED = "Transfer-Encoding: chunked"


def _llm() -> LLM:
    return writing_llm("An answer", oracle(b"An answer"))


@pytest.fixture(scope="module")
def server() -> Iterator[Whole]:
    with whole(_llm()) as running:
        yield running


def _paths() -> list[tuple[str, str]]:
    """Every route of the app with each of its methods."""
    service = Service(ServerConfig(), "tiny")
    routes = [route for route in service.api().routes if isinstance(route, Route)]
    service.close()
    return [
        (method, route.path.replace("{id:path}", "tiny"))
        for route in routes
        for method in [*sorted(route.methods or {"GET"}), "OPTIONS", "DELETE"]
    ]


def test_every_route_but_health_needs_a_key() -> None:
    paths = _paths()
    assert {path for _, path in paths} >= {"/", "/page/page.js", _PATH, "/v1/models", "/metrics", "/health/ready"}
    with whole(_llm(), ServerConfig(port=0, api_keys=("secret",))) as running:
        for method, path in paths:
            status = running.client.request(method, path).status_code
            if path == "/health":
                assert status in (200, 405), (method, path)
            else:
                assert status == 401, (method, path)
        assert running.client.get("/v1/models", headers={"Authorization": "Bearer secret"}).status_code == 200


def _post(port: int, body: bytes, *headers: str) -> Reply:
    length = f"Content-Length: {len(body)}"
    return exchange(port, request(_PATH, length, *headers, method="POST") + body)


def _with(**fields: object) -> bytes:
    return json.dumps({**_CHAT, **fields}).encode()


BAD_BODIES: dict[str, bytes] = {
    "empty": b"",
    "no object": b"[]",
    "no JSON": b"{",
    "byte order mark": b"\xef\xbb\xbf{}",
    "invalid UTF-8": b'{"messages": "\xff"}',
    "UTF-16": json.dumps(_CHAT).encode("utf-16"),
    "NUL": b'{"messages": "\0"}',
    "escaped NUL": _with(stop="\0"),
    "lone surrogate": b'{"messages": [{"role": "user", "content": "\\ud800"}]}',
    "NaN": b'{"messages": [], "temperature": NaN}',
    "Infinity": b'{"messages": [], "temperature": Infinity}',
    "a seed of 65 bits": _with(seed=2**64),
    "1e999": b'{"messages": [], "temperature": 1e999}',
    "10,000 deep": b'{"messages": ' + b"[" * 10_000 + b"]" * 10_000 + b"}",
    "repeated key": b'{"messages": [], "messages": []}',
    "no messages": _with(messages=[]),
    "no prompt": b"{}",
    "5 MB of Unicode": _with(messages=[{"role": "user", "content": "\u00e9" * 1_000_000}]),
    "unknown field": _with(unknown=1),
    "a million answers": _with(n=1_000_000),
    "100,000 biases": _with(logit_bias={str(token): 1 for token in range(100_000)}),
    "temperature 1e308": _with(temperature=1e308),
    "a text beyond the context": _with(messages=[{"role": "user", "content": "word " * 380_000}]),
    "messages beyond the context": _with(messages=[{"role": "user", "content": "Hello"}] * 15_000),
    **{
        f"{field} {value}": _with(**{field: value})
        for field in ("max_tokens", "n", "top_k", "top_logprobs", "max_completion_tokens")
        for value in (-(2**31), -(2**63), 2**31, 2**63, 2**64)
    },
    **{
        f"{field} as {kind}": _with(**{field: value})
        for field in ("messages", "max_tokens", "temperature", "stop", "stream", "logit_bias", "response_format", "n")
        for kind, value in (("text", "x" * 10), ("object", {"a": 1}), ("nested list", [[[1]]]))
        if (field, kind) != ("stop", "text")
    },
}


@pytest.mark.parametrize("body", BAD_BODIES.values(), ids=BAD_BODIES)
def test_a_bad_body_is_refused_in_the_shape_of_all_errors_without_much_work(server: Whole, body: bytes) -> None:
    _post(server.port, b"{}")  # whatever is made on first use
    start = time.process_time()  # which stands still while other programs have the processor
    reply = _post(server.port, body)
    assert time.process_time() - start < 2.0
    assert 400 <= reply.status < 500
    assert reply.status != 408
    assert set(reply.error) == {"message", "type", "param", "code"}
    assert len(reply.error["message"]) < 500
    assert exchange(server.port, request("/health")).status == 200


@pytest.mark.parametrize(
    ("head", "body", "status"),
    [
        (request(_PATH, method="POST"), b"", 400),
        (request(_PATH, "Content-Length: -5", method="POST"), b"{}", 400),
        (request(_PATH, "Content-Length: 1", method="POST"), b"{", 400),
        (request(_PATH, f"Content-Length: {2**21 + 1}", method="POST"), b"", 413),
        (request(_PATH, _CHUNKED, method="POST"), b"-5\r\n{}\r\n0\r\n\r\n", 400),
        (request(_PATH, "Transfer-Encoding: gzip, chunked", method="POST"), b"0\r\n\r\n", 400),
        (request(_PATH, "Content-Encoding: gzip", "Content-Length: 2", method="POST"), b"{}", 415),
        (request(_PATH, method="PUT"), b"", 405),
        (request("/v1/nothing"), b"", 404),
    ],
)
def test_a_body_that_is_not_what_its_header_says_is_refused(
    server: Whole, head: bytes, body: bytes, status: int
) -> None:
    reply = exchange(server.port, head + body)
    assert reply.status == status
    assert set(reply.error) == {"message", "type", "param", "code"}


@pytest.mark.parametrize(("header", "body"), [("Content-Length: 50", b"{}"), (_CHUNKED, b"2\r\n{}\r\n")])
def test_a_body_that_does_not_come_to_its_end_is_refused(header: str, body: bytes) -> None:
    with whole(_llm(), ServerConfig(port=0, body_timeout_s=0.2)) as server:
        reply = exchange(server.port, request(_PATH, header, method="POST") + body)
    assert (reply.status, reply.error["code"]) == (408, "body_timeout")


def test_chunks_without_end_are_refused(server: Whole) -> None:
    chunk = b"10000\r\n" + b"a" * 65536 + b"\r\n"
    head = request(_PATH, _CHUNKED, method="POST")
    assert exchange(server.port, head, *[chunk] * 40).status == 413


def test_the_event_loop_goes_on_while_bad_bodies_come_in(server: Whole) -> None:
    """Four clients send the slowest bodies over and over; health is asked meanwhile."""
    slowest = [BAD_BODIES[name] for name in ("10,000 deep", "5 MB of Unicode", "100,000 biases")]
    stop, took = threading.Event(), list[float]()

    def attack() -> None:
        while not stop.is_set():
            for body in slowest:
                _post(server.port, body)

    with ThreadPoolExecutor(4) as pool:
        attackers = [pool.submit(attack) for _ in range(4)]
        for _ in range(30):
            start = time.monotonic()
            assert exchange(server.port, request("/health")).status == 200
            took.append(time.monotonic() - start)
        stop.set()
        for attacker in attackers:
            attacker.result()
    assert median(took) < 2.0  # one of them may meet a machine that is busy


def test_readers_that_never_read_are_given_up_and_the_others_served() -> None:
    config = ServerConfig(port=0, unsent_bytes=16384)
    with whole(writing_llm("a" * 4000), config) as running, contextlib.ExitStack() as stack:
        body = json.dumps({**_CHAT, "stream": True, "max_tokens": 4000, "logprobs": True, "top_logprobs": 20}).encode()
        for _ in range(4):
            client = stack.enter_context(socket.socket())
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect(("127.0.0.1", running.port))
            client.sendall(request(_PATH, f"Content-Length: {len(body)}", method="POST") + body)
        eventually(lambda: running.metrics().get('answers_total{reason="cancelled"}') == 4)
        eventually(lambda: running.metrics()["requests_running"] == 0)
        answer = running.client.post(_PATH, json={**_CHAT, "max_tokens": 5}).json()
        assert answer["choices"][0]["message"]["content"] == "aaaaa"


def test_slow_headers_on_many_connections_leave_room_for_others() -> None:
    config = ServerConfig(port=0, header_timeout_s=1.0)
    with whole(_llm(), config) as running:
        clients = [connect(running.port) for _ in range(200)]
        for letter in b"POST /v1":
            for client in clients:
                with contextlib.suppress(ConnectionError):
                    client.send(bytes([letter]))
            assert running.client.post(_PATH, json=_CHAT).status_code == 200
        assert {read_reply(client).status for client in clients} == {408}
        for client in clients:
            client.close()


def test_more_than_there_is_room_for_is_refused_and_nothing_lost() -> None:
    """64 clients with 20 requests each, 4 answers written at a time and 16 waiting."""
    statuses: Counter[int] = Counter()
    lacking: list[str] = []
    lock = threading.Lock()
    config = ServerConfig(port=0, concurrent=4, waiting=16)

    def ask(url: str) -> None:
        with httpx.Client(base_url=url, timeout=60, trust_env=False) as client:
            for _ in range(20):
                response = client.post(_PATH, json={**_CHAT, "max_tokens": 4})
                with lock:
                    statuses[response.status_code] += 1
                    if response.status_code == 429 and "retry-after" not in response.headers:
                        lacking.append(response.text)

    with whole(_llm(), config) as running:
        with ThreadPoolExecutor(64) as pool:
            for done in [pool.submit(ask, running.url) for _ in range(64)]:
                done.result()
        eventually(lambda: running.client.get("/v1/borrador/stats").json()["reserved"] == 0)
        seen, stats = running.metrics(), running.client.get("/v1/borrador/stats").json()
    assert set(statuses) == {200, 429}
    assert statuses.total() == 64 * 20
    assert not lacking
    assert seen['answers_total{reason="length"}'] == statuses[200]
    assert seen['requests_rejected_total{reason="queue_full"}'] == statuses[429]
    assert stats["requests_admitted"] == stats["requests_finished"] == statuses[200]
    assert stats["requests_cancelled"] == stats["requests_failed"] == 0
