"""Answers to requests that no app gets to see."""

from __future__ import annotations

import json

import anyio
from starlette.types import Receive, Scope, Send

from borrador.server.errors import ApiError

_LINGER_S = 2.0
_LINGER_BYTES = 16 * 2**20


def header_values(scope: Scope, name: bytes) -> list[bytes]:
    """All values of a header, by its name in lower case."""
    return [value for given, value in scope["headers"] if given == name]


def has_body(scope: Scope) -> bool:
    """Whether a request announces a body."""
    lengths = header_values(scope, b"content-length")
    return any(length != b"0" for length in lengths) or bool(header_values(scope, b"transfer-encoding"))


async def refuse(error: ApiError, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a request with an error, without looking at its body.

    A client that is still sending when the connection closes may lose the answer. So what is left of the body is
    dropped first, for a while; the connection is not used again.
    """
    body = json.dumps(error.as_json()).encode()
    unread = has_body(scope)
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    headers += [(name.lower().encode(), value.encode()) for name, value in error.headers.items()]
    if unread:
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": unread})
    if unread:
        with anyio.move_on_after(_LINGER_S):
            await _drop_body(receive)
        await send({"type": "http.response.body", "body": b""})


async def _drop_body(receive: Receive) -> None:
    dropped = 0
    while dropped < _LINGER_BYTES:
        message = await receive()
        dropped += len(message.get("body", b""))
        if not message.get("more_body", False):
            return
