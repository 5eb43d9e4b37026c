"""Requests on their way through all the guards, over real sockets, to an app that tells what it got."""

from __future__ import annotations

import base64
import json
import logging
import time
from collections.abc import Iterator

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send
from tests.batches import eventually
from tests.server.live import Reply, connect, exchange, read_reply, request, serving

from borrador.server.config import ServerConfig
from borrador.server.guard import guarded
from borrador.server.keys import namespace_of

_CONFIG = ServerConfig(
    port=0,
    api_keys=("first-key", "second-key"),
    allowed_origins=("https://chat.example.org",),
    allowed_hosts=("llm.example.org",),
    body_bytes=4096,
)
_KEY = "Authorization: Bearer first-key"


async def _tell(request: Request) -> JSONResponse:
    body = await request.body()
    state = request.state
    return JSONResponse({"namespace": state.namespace, "request_id": state.request_id, "bytes": len(body)})


_ROUTES = ("/", "/health", "/health/ready", "/v1/models", "/metrics")
_APP = Starlette(routes=[Route(path, _tell, methods=["GET", "POST"]) for path in _ROUTES])


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with serving(guarded(_APP, _CONFIG), _CONFIG) as port:
        yield port


def _post(port: int, body: bytes, *headers: str) -> Reply:
    head = request("/v1/models", _KEY, f"Content-Length: {len(body)}", *headers, method="POST")
    return exchange(port, head + body)


def _told(reply: Reply) -> dict[str, object]:
    told: dict[str, object] = json.loads(reply.body)
    return told


@pytest.mark.parametrize("path", ["/", "/health/ready", "/v1/models", "/metrics", "/nowhere", "/health/", "//health"])
def test_everything_but_health_needs_a_key(port: int, path: str) -> None:
    reply = exchange(port, request(path))
    assert (reply.status, reply.error["type"], reply.error["code"]) == (401, "authentication_error", "invalid_api_key")
    assert reply.headers["www-authenticate"].startswith("Basic" if path == "/" else "Bearer")
    assert exchange(port, request("/health")).status == 200


@pytest.mark.parametrize(
    "header",
    [
        "Authorization: Bearer first-keY",
        "Authorization: Bearer",
        "Authorization: first-key",
        "Authorization: Basic !!!",
        "Authorization: Basic " + base64.b64encode(b"first-key:").decode(),
        "X-Api-Key: ",
        "X-Api-Key: first-key,second-key",
        "Cookie: first-key",
    ],
)
def test_a_wrong_key_is_none(port: int, header: str) -> None:
    reply = exchange(port, request("/v1/models", header))
    assert reply.status == 401
    assert "first-key" not in reply.body.decode().lower()


@pytest.mark.parametrize(
    "header",
    [
        "Authorization: Bearer second-key",
        "authorization: bearer  second-key",
        "X-Api-Key: second-key",
        "Authorization: Basic " + base64.b64encode(b"anyone:second-key").decode(),
    ],
)
def test_a_key_opens_its_own_namespace(port: int, header: str) -> None:
    reply = exchange(port, request("/v1/models", header))
    assert _told(reply)["namespace"] == namespace_of("second-key") != namespace_of("first-key")
    assert len(namespace_of("second-key")) == 16


def test_without_keys_there_is_one_namespace() -> None:
    with serving(guarded(_APP, ServerConfig(port=0))) as port:
        assert _told(exchange(port, request("/v1/models", _KEY)))["namespace"] == ""


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:8080", "127.0.0.1:1", "127.3.4.5", "[::1]:8080", "llm.example.org", "localhost."]
)
def test_its_own_names_are_answered_to(port: int, host: str) -> None:
    assert exchange(port, request("/health", host=host)).status == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "10.0.0.1", "127.0.0.1.evil.example", "llm.example.org@evil", ""]
)
def test_a_foreign_host_is_refused_even_with_a_key(port: int, host: str) -> None:
    reply = exchange(port, request("/health", _KEY, host=host))
    assert (reply.status, reply.error["code"]) == (403, "foreign_host")


def test_a_request_names_one_host(port: int) -> None:
    assert exchange(port, b"GET /health HTTP/1.0\r\n\r\n").error["code"] == "invalid_host"
    assert exchange(port, request("/health", "Host: localhost")).error["code"] == "invalid_host"


def test_an_address_is_answered_to_where_other_machines_may_come() -> None:
    config = ServerConfig(host="0.0.0.0", port=0, insecure=True)
    with serving(guarded(_APP, config), config) as port:
        assert exchange(port, request("/health", host="192.0.2.7:8080")).status == 200
        assert exchange(port, request("/health", host="[2001:db8::7]")).status == 200
        assert exchange(port, request("/health", host="evil.example")).status == 403


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost:1", "https://chat.example.org:1"])
def test_pages_of_other_origins_are_refused(port: int, origin: str) -> None:
    reply = exchange(port, request("/v1/models", _KEY, f"Origin: {origin}"))
    assert (reply.status, reply.error["code"]) == (403, "foreign_origin")
    assert "access-control-allow-origin" not in reply.headers
    preflight = request("/v1/models", f"Origin: {origin}", "Access-Control-Request-Method: POST", method="OPTIONS")
    assert exchange(port, preflight).status == 403


@pytest.mark.parametrize("origin", ["http://127.0.0.1", "HTTP://127.0.0.1", "https://127.0.0.1"])
def test_its_own_page_needs_no_permission(port: int, origin: str) -> None:
    reply = exchange(port, request("/v1/models", _KEY, f"Origin: {origin}"))
    assert reply.status == 200
    assert "access-control-allow-origin" not in reply.headers


def test_pages_of_an_allowed_origin_may_read_answers_and_errors(port: int) -> None:
    origin = "Origin: https://chat.example.org"
    for headers, status in ((_KEY, 200), ("X-Api-Key: wrong", 401)):
        reply = exchange(port, request("/v1/models", headers, origin))
        assert (reply.status, reply.headers["access-control-allow-origin"]) == (status, "https://chat.example.org")
        assert reply.headers["vary"] == "Origin"
        assert "access-control-allow-credentials" not in reply.headers
    preflight = request("/v1/models", origin, "Access-Control-Request-Method: POST", method="OPTIONS")
    reply = exchange(port, preflight)
    assert (reply.status, reply.headers["access-control-allow-methods"]) == (204, "GET, POST")


def test_a_body_arrives_whole_up_to_its_limit(port: int) -> None:
    assert _told(_post(port, b"a" * 4096))["bytes"] == 4096
    head = request("/v1/models", _KEY, "Transfer-Encoding: chunked", method="POST")
    reply = exchange(port, head, *(b"400\r\n" + b"a" * 1024 + b"\r\n" for _ in range(4)), b"0\r\n\r\n")
    assert _told(reply)["bytes"] == 4096


def test_a_body_above_its_limit_is_refused(port: int) -> None:
    reply = _post(port, b"a" * 4097)
    assert (reply.status, reply.error["code"]) == (413, "body_too_large")
    assert reply.error["message"] == "The body must have at most 4096 bytes, it has 4097."
    head = request("/v1/models", _KEY, "Transfer-Encoding: chunked", method="POST")
    reply = exchange(port, head, *(b"400\r\n" + b"a" * 1024 + b"\r\n" for _ in range(5)))
    assert (reply.status, reply.error["code"]) == (413, "body_too_large")


def test_a_client_that_sends_all_of_a_large_body_still_reads_the_refusal(port: int) -> None:
    reply = _post(port, b"a" * 5_000_000)
    assert (reply.status, reply.headers["connection"]) == (413, "close")


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "gzip, identity"])
def test_a_compressed_body_is_refused(port: int, coding: str) -> None:
    reply = _post(port, b"x", f"Content-Encoding: {coding}")
    assert (reply.status, reply.error["code"]) == (415, "content_encoding")


def test_a_body_that_stalls_is_refused_in_time_and_frees_its_connection() -> None:
    config = ServerConfig(port=0, body_timeout_s=0.5)
    with serving(guarded(_APP, config), config) as port:
        clients = [connect(port) for _ in range(20)]
        start = time.monotonic()
        for client in clients:
            client.sendall(request("/v1/models", "Content-Length: 100", method="POST") + b"stalled")
        assert exchange(port, request("/health")).status == 200
        replies = [read_reply(client) for client in clients]
        assert {(reply.status, reply.error["code"]) for reply in replies} == {(408, "body_timeout")}
        assert time.monotonic() - start > config.body_timeout_s
        for client in clients:
            assert client.recv(1) == b""
            client.close()


def test_what_follows_a_body_is_no_part_of_it(port: int) -> None:
    with connect(port) as client:
        client.sendall(request("/v1/models", _KEY, "Content-Length: 2", method="POST") + b"{}garbage\r\n\r\n")
        assert _told(read_reply(client))["bytes"] == 2
        assert client.recv(1) == b""


@pytest.mark.parametrize("given", ["abc-1.2:3_4", "a" * 64])
def test_a_request_keeps_the_name_that_its_client_gave(port: int, given: str) -> None:
    reply = exchange(port, request("/v1/models", _KEY, f"X-Request-Id: {given}"))
    assert reply.headers["x-request-id"] == given == _told(reply)["request_id"]


@pytest.mark.parametrize("given", ["", "a b", "a" * 65, "a\tb", "\u00e9", "<script>"])
def test_a_request_gets_another_name_where_its_own_is_strange(port: int, given: str) -> None:
    reply = exchange(port, request("/v1/models", _KEY, f"X-Request-Id: {given}"))
    assert reply.headers["x-request-id"] != given
    assert len(reply.headers["x-request-id"]) == 32


async def _fail(scope: Scope, receive: Receive, send: Send) -> None:
    raise RuntimeError("on purpose")


def test_what_the_app_fails_at_is_an_answer(caplog: pytest.LogCaptureFixture) -> None:
    with serving(guarded(_fail, ServerConfig(port=0))) as port:
        reply = exchange(port, request("/v1/models"))
    assert (reply.status, reply.error["code"]) == (500, "internal_error")
    assert "purpose" not in reply.body.decode()
    errors = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert [record.exc_info is not None for record in errors] == [True]


def test_the_log_has_a_line_for_each_request_without_keys_bodies_queries_or_control_characters(
    port: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "borrador.access")
    head = request("/v1/mod%0Aels%1b?prompt=hidden", _KEY, "X-Request-Id: named", "Content-Length: 6", method="POST")
    exchange(port, head + b"secret")
    eventually(lambda: any("request=named " in line for line in caplog.messages))
    (line,) = (line for line in caplog.messages if "request=named " in line)
    assert line.startswith("127.0.0.1 POST /v1/mod?els? 404 ")
    assert f"request=named key={namespace_of('first-key')}" in line
    for hidden in ("first-key", "secret", "hidden", "\n", "\x1b"):
        assert hidden not in line


def test_every_response_is_counted_by_its_status() -> None:
    statuses: list[int] = []
    with serving(guarded(_APP, _CONFIG, statuses.append), _CONFIG) as port:
        exchange(port, request("/health"))
        exchange(port, request("/v1/models"))
        _post(port, b"a" * 5000)
    assert sorted(statuses) == [200, 401, 413]
