"""A name for every request, and a line in the log that says what became of it, and nothing of what it held."""

from __future__ import annotations

import logging
import re
import time
import uuid
from collections.abc import Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from borrador.server.errors import as_api_error
from borrador.server.refusal import header_values, refuse

ACCESS_LOG = "borrador.access"
_GIVEN_ID = re.compile(r"[A-Za-z0-9._:-]{1,64}")
_PATH_CHARACTERS = 200
_log = logging.getLogger(ACCESS_LOG)


class RequestLog:
    """Names requests, logs their ends, and turns whatever the app raises into an answer.

    The name is the client's own `X-Request-Id` where that is 1 to 64 letters, digits and `._:-`, else a new one. It is
    in the scope's state as `request_id`, and in the response as `X-Request-Id`.

    Args:
        app: gets the requests.
        count: told the status of every response; 0 where the client left before there was one.
    """

    def __init__(self, app: ASGIApp, count: Callable[[int], None] | None = None) -> None:
        self._app = app
        self._count = count

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":  # of WebSockets none is served, and nothing needs to be told of start and end
            return
        start = time.perf_counter()
        name = _name(scope)
        scope.setdefault("state", {})["request_id"] = name
        response = _Response(name, send)
        try:
            await self._app(scope, receive, response.send)
        except Exception as error:
            if response.status:
                raise
            await refuse(as_api_error(error), scope, receive, response.send)
        finally:
            if self._count is not None:
                self._count(response.status)
            _log_line(scope, response, time.perf_counter() - start)


class _Response:
    """A response on its way to the client."""

    def __init__(self, name: str, send: Send) -> None:
        self.status = 0
        self.sent = 0
        self._header = (b"x-request-id", name.encode())
        self._send = send

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message = {**message, "headers": [*message.get("headers", ()), self._header]}
        self.sent += len(message.get("body", b""))
        await self._send(message)


def _name(scope: Scope) -> str:
    given = header_values(scope, b"x-request-id")
    named = _GIVEN_ID.fullmatch(given[0].decode("latin-1")) if len(given) == 1 else None
    return named[0] if named is not None else uuid.uuid4().hex


def _log_line(scope: Scope, response: _Response, seconds: float) -> None:
    if not _log.isEnabledFor(logging.INFO):
        return
    client, state = scope.get("client"), scope["state"]
    path = "".join(letter if letter.isprintable() else "?" for letter in scope["path"][:_PATH_CHARACTERS])
    _log.info(
        "%s %s %s %d %d bytes %.0f ms request=%s key=%s",
        client[0] if client else "-",
        scope["method"],
        path,
        response.status,
        response.sent,
        1000 * seconds,
        state["request_id"],
        state.get("namespace") or "-",
    )
