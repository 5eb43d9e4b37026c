"""Over real sockets, since what is tested is what happens before there is a request for an app."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import AsyncIterator, Iterator

import pytest
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Route
from tests.batches import PATIENCE_S, eventually
from tests.server.live import connect, exchange, read_reply, request, serving

from borrador.server.config import ServerConfig

_LIMITS = ServerConfig(port=0, header_bytes=1024, body_bytes=4096)
_HASTY = ServerConfig(port=0, header_timeout_s=0.6)  # for requests that are sent at once, or never


async def _health(_: Request) -> PlainTextResponse:
    return PlainTextResponse("fine")


async def _echo(request: Request) -> PlainTextResponse:
    try:
        return PlainTextResponse(await request.body())
    except ClientDisconnect:
        return PlainTextResponse("gone")


async def _slow(_: Request) -> StreamingResponse:
    return StreamingResponse(_ticks())


async def _ticks() -> AsyncIterator[bytes]:
    for _ in range(10):
        yield b"tick"
        await asyncio.sleep(0.1)


_APP = Starlette(routes=[Route("/health", _health), Route("/echo", _echo, methods=["POST"]), Route("/slow", _slow)])


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with serving(_APP, _LIMITS) as port:
        yield port


@pytest.fixture(scope="module")
def hasty() -> Iterator[int]:
    """The port of a server that waits for headers only for a moment."""
    with serving(_APP, _HASTY) as port:
        yield port


@pytest.mark.parametrize(
    "message",
    [
        b"nonsense\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\nHost: a\r\n\r\n",
        request("/echo", "Content-Length: -1", method="POST"),
        request("/echo", "Content-Length: five", method="POST"),
        request("/echo", "Content-Length: 99999999999999999999999", method="POST"),
        request("/echo", "Content-Length: 1", "Content-Length: 2", method="POST"),
        request("/echo", "Content-Length: 1", "Transfer-Encoding: chunked", method="POST"),
        request("/echo", "Transfer-Encoding: chunked", method="POST") + b"zz\r\n",
        request("/health", "Bad Name: 1"),
        request("/health", "Name: a\0b"),
    ],
)
def test_what_is_not_http_is_refused_in_the_shape_of_other_errors(port: int, message: bytes) -> None:
    reply = exchange(port, message)
    assert reply.status == 400
    assert reply.error == {
        "message": "The request is not valid HTTP/1.1.",
        "type": "invalid_request_error",
        "param": None,
        "code": "invalid_http",
    }
    assert reply.headers["connection"] == "close"


def test_a_header_is_measured_to_the_byte(port: int) -> None:
    fixed = len("/health") + len("Host") + len("127.0.0.1") + 4 + len("X-Long") + 4
    assert exchange(port, request("/health", f"X-Long: {'a' * (1024 - fixed)}")).status == 200
    reply = exchange(port, request("/health", f"X-Long: {'a' * (1025 - fixed)}"))
    assert (reply.status, reply.error["code"]) == (431, "header_too_large")
    assert reply.error["message"] == "The header must have at most 1024 bytes, it has more."


@pytest.mark.parametrize("start", [b"GET /", b"GET / HTTP/1.1\r\nX-Long: ", b"GET / HTTP/1.1\r\nX-", b"\r\n"])
def test_a_header_without_end_is_refused_before_it_is_kept(port: int, start: bytes) -> None:
    sent = 0
    filling = b"\r\n" * 500 if start == b"\r\n" else b"a" * 1000
    with connect(port) as client:
        client.sendall(start)
        with contextlib.suppress(ConnectionError):
            while sent < 50_000_000 and not _is_answered(client):
                sent += client.send(filling)
        assert read_reply(client).status == 431
    assert sent < 20_000_000  # what the sockets' own buffers take among it


def _is_answered(client: socket.socket) -> bool:
    client.setblocking(False)
    try:
        return bool(client.recv(1, socket.MSG_PEEK))
    except BlockingIOError:
        return False
    finally:
        client.settimeout(PATIENCE_S)


def test_a_header_that_arrives_a_byte_at_a_time_is_refused_in_time(hasty: int) -> None:
    start = time.monotonic()
    clients = [connect(hasty) for _ in range(20)]
    with contextlib.ExitStack() as stack:
        for client in clients:
            stack.enter_context(client)
        for letter in b"GET /health HT":
            for client in clients:
                with contextlib.suppress(ConnectionError):
                    client.send(bytes([letter]))
            assert exchange(hasty, request("/health")).status == 200
            time.sleep(0.05)
        replies = [read_reply(client) for client in clients]
    assert {(reply.status, reply.error["code"]) for reply in replies} == {(408, "header_timeout")}
    assert time.monotonic() - start > _HASTY.header_timeout_s


def test_a_connection_on_which_nothing_is_sent_is_closed(hasty: int) -> None:
    with connect(hasty) as client:
        assert client.recv(1) == b""


def test_a_connection_between_requests_is_closed_after_its_idle_time() -> None:
    with serving(_APP, ServerConfig(port=0, idle_timeout_s=0.4)) as port, connect(port) as client:
        start = time.monotonic()
        client.sendall(request("/health"))
        assert read_reply(client).body == b"fine"
        assert client.recv(1) == b""
        assert time.monotonic() - start > 0.4


def test_line_breaks_do_not_keep_a_connection_open(hasty: int) -> None:
    with connect(hasty) as client:
        client.sendall(request("/health"))
        assert read_reply(client).status == 200
        client.sendall(b"\r\n")
        assert read_reply(client).status == 408


def test_an_answer_may_take_longer_than_a_header(hasty: int) -> None:
    with connect(hasty) as client:
        client.sendall(request("/slow", "Connection: close"))
        assert client.makefile("rb").read().count(b"tick") == 10


def test_half_a_request_sent_ahead_does_not_cut_the_answer_before_it(hasty: int) -> None:
    with connect(hasty) as client:
        client.sendall(request("/slow") + b"GET /health HTTP/1.1\r\nHo")
        answer = client.makefile("rb").read()
    assert answer.count(b"tick") == 10
    assert answer.endswith(b'"code": "header_timeout"}}')


def test_requests_on_one_connection_are_all_served(port: int) -> None:
    with connect(port) as client:
        for _ in range(30):
            client.sendall(request("/echo", "Content-Length: 3000", method="POST") + b"a" * 3000)
            assert read_reply(client).body == b"a" * 3000


def test_framing_cannot_outweigh_the_body(port: int) -> None:
    with connect(port) as client:
        client.sendall(request("/echo", "Transfer-Encoding: chunked", method="POST"))
        for _ in range(200):  # with 20 bytes of a body each
            if _is_answered(client):
                break
            client.sendall((b"1;" + b"x" * 1000 + b"\r\na\r\n") * 20)
        reply = read_reply(client)
    assert (reply.status, reply.error["code"]) == (413, "body_too_large")


def test_more_connections_than_allowed_are_refused() -> None:
    with serving(_APP, ServerConfig(port=0, connections=3)) as port, contextlib.ExitStack() as stack:
        held = [stack.enter_context(connect(port)) for _ in range(3)]
        for client in held:
            client.sendall(request("/health"))
            assert read_reply(client).status == 200
        reply = read_reply(stack.enter_context(connect(port)))
        assert (reply.status, reply.error["code"], reply.headers["retry-after"]) == (503, "connections", "1")
        held.pop().close()
        eventually(lambda: exchange(port, request("/health")).status == 200)
