"""The bodies of requests: whole, in time, as they are, and not too large, before anything looks at them."""

from __future__ import annotations

import anyio
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from borrador.server.errors import ApiError
from borrador.server.refusal import has_body, header_values, refuse


class Bodies:
    """Reads a request's body, and hands it on in one piece.

    Args:
        app: gets requests whose bodies keep to the limits.
        most: bytes of a body; more are refused with 413.
        timeout_s: for a body to arrive; after that it is refused with 408.
    """

    def __init__(self, app: ASGIApp, *, most: int, timeout_s: float) -> None:
        self._app = app
        self._most = most
        self._timeout_s = timeout_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not has_body(scope):
            await self._app(scope, receive, send)
            return
        try:
            self._check_headers(scope)
            body = await self._read(receive)
        except ApiError as error:
            await refuse(error, scope, receive, send)
            return
        if body is not None:
            await self._app(scope, _replayed(body, receive), send)

    def _check_headers(self, scope: Scope) -> None:
        for coding in header_values(scope, b"content-encoding"):
            if coding.lower() not in (b"", b"identity"):
                message = f"The body must be sent as it is, got Content-Encoding {coding.decode('latin-1')!r:.40}."
                raise ApiError(415, message, code="content_encoding")
        for length in header_values(scope, b"content-length"):
            if not length.isdigit():
                raise ApiError(400, "Content-Length must be a whole number, it is not.", code="content_length")
            if int(length) > self._most:
                raise self._too_large(f"it has {int(length)}")

    async def _read(self, receive: Receive) -> bytes | None:
        """The body; None where the client is gone."""
        body = bytearray()
        with anyio.move_on_after(self._timeout_s):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return None
                body += message.get("body", b"")
                if len(body) > self._most:
                    raise self._too_large("it has more")
                if not message.get("more_body", False):
                    return bytes(body)
        raise ApiError(408, f"The body must arrive within {self._timeout_s:g} s, it did not.", code="body_timeout")

    def _too_large(self, finding: str) -> ApiError:
        return ApiError(413, f"The body must have at most {self._most} bytes, {finding}.", code="body_too_large")


def _replayed(body: bytes, receive: Receive) -> Receive:
    """What receives the body as one message, then what comes after it."""
    pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return pending.pop() if pending else await receive()

    return replay
