"""A connection: how long a request's header may be and take, and what is not HTTP refused in the API's own words."""

from __future__ import annotations

import asyncio
import json
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from borrador.server.config import ServerConfig
from borrador.server.errors import ApiError

_LINGER_S = 2.0
_LINGER_BYTES = 16 * 2**20
_FRAMING = 8  # bytes that a byte of a body may come with: a chunk of its own, and room to spare
_NOT_HTTP = ApiError(400, "The request is not valid HTTP/1.1.", code="invalid_http")


class Connection(HttpToolsProtocol):
    """uvicorn's connection, with limits to what it takes in before there is a request for the app.

    A header is measured when it is complete, to the byte. Until then what arrives is counted by reads, the first one
    left out, so that no header occupies more than a read above its limit.

    Args:
        limits: bytes and seconds of a header, bytes of a body, connections.
        protocol: arguments that uvicorn gives its own.
    """

    def __init__(self, *, limits: ServerConfig, **protocol: Any) -> None:
        super().__init__(**protocol)
        self._limits = limits
        self._most_bytes = limits.header_bytes + _FRAMING * limits.body_bytes
        self._in_header = True
        self._has_begun = False
        self._received = 0  # bytes of the message, without the read that it began in
        self._deadline: asyncio.TimerHandle | None = None
        self._refusal: ApiError | None = None
        self._refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self._limits.connections:
            message = f"At most {self._limits.connections} connections may be open."
            error = ApiError(503, message, code="connections", headers={"Retry-After": "1"})
            self._refused = True
            self.transport.write(_response(error))
            self.transport.close()  # at once: those that linger are connections too
        else:
            self._await_header()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._received += len(data)
        if self._refused:
            self._drop()
            return
        if self._in_header and not self._is_answering:
            self._await_header()
        super().data_received(data)
        if not self._refused and not self.transport.is_closing():
            self._check_received()

    def on_message_begin(self) -> None:
        self._has_begun, self._received = True, 0
        self._await_header()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._stop_waiting()
        length = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        if length > self._limits.header_bytes:
            self._refusal = self._header_too_large()
            raise ValueError("the header is too large")  # which ends in `send_400_response`
        self._in_header = False
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._in_header, self._has_begun, self._received = True, False, 0
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 (what uvicorn would say)
        self._refuse(self._refusal or _NOT_HTTP)

    @property
    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _check_received(self) -> None:
        if self._in_header:
            if self._received > self._limits.header_bytes:
                self._refuse(self._header_too_large())
        elif not self.cycle.response_started and self._received > self._most_bytes:
            message = f"The body must have at most {self._limits.body_bytes} bytes, it has more."
            self._refuse(ApiError(413, message, code="body_too_large"))

    def _header_too_large(self) -> ApiError:
        message = f"The header must have at most {self._limits.header_bytes} bytes, it has more."
        return ApiError(431, message, code="header_too_large")

    def _await_header(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(self._limits.header_timeout_s, self._end_waiting)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _end_waiting(self) -> None:
        self._deadline = None
        if self._is_answering:  # the header of a next request, sent ahead, has the time of this answer
            self._await_header()
        elif self._received or self._has_begun:
            message = f"The header must arrive within {self._limits.header_timeout_s:g} s, it did not."
            self._refuse(ApiError(408, message, code="header_timeout"))
        else:
            self.transport.close()

    def _refuse(self, error: ApiError) -> None:
        """Answer with an error, and end. What the client still sends is dropped for a while: it may read late."""
        self._refused = True
        self._stop_waiting()
        self._unset_keepalive_if_required()
        if self._is_answering and not self._yield_to_error():
            return
        self.transport.write(_response(error))
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._received = 0
        self._deadline = self.loop.call_later(_LINGER_S, self.transport.close)

    def _yield_to_error(self) -> bool:
        """Whether an error can take the place of the answer that is due; else that is the connection's last one."""
        if self._in_header:  # what is wrong was sent ahead, behind a request that was whole
            self.cycle.keep_alive = False
        elif self.cycle.response_started or self.pipeline:
            self.transport.close()
        else:
            self.cycle.disconnected = True  # the app waits for a body that will not be whole
            self.cycle.message_event.set()
            return True
        return False

    def _drop(self) -> None:
        if self._received > _LINGER_BYTES:
            self.transport.abort()


def _response(error: ApiError) -> bytes:
    body = json.dumps(error.as_json()).encode()
    given = "".join(f"{name}: {value}\r\n" for name, value in error.headers.items())
    head = (
        f"HTTP/1.1 {error.status} {HTTPStatus(error.status).phrase}\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\nconnection: close\r\n{given}\r\n"
    )
    return head.encode() + body
