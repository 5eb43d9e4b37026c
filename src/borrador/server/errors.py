"""What a client is told when a request fails: a status and a JSON object in the shape of OpenAI's."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from borrador.errors import (
    BorradorError,
    ContextLengthError,
    MemoryLimitError,
    ModelError,
    QueueFullError,
    UnavailableError,
    UsageError,
)
from borrador.server.json_body import JsonError

_log = logging.getLogger("borrador.server")

_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


class ApiError(Exception):
    """Ends a request.

    Args:
        status: of HTTP.
        message: for people.
        param: the field of the request that is to blame; None where none is.
        code: for programs; None where the status says it all.
        headers: of the response.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.param = param
        self.code = code
        self.headers = dict(headers or {})

    @property
    def type(self) -> str:
        """The kind of error, as OpenAI's clients know it."""
        return _TYPES.get(self.status, "invalid_request_error" if self.status < 500 else "server_error")

    def as_json(self) -> dict[str, Any]:
        """The object that clients get."""
        return {"error": {"message": str(self), "type": self.type, "param": self.param, "code": self.code}}

    def response(self) -> Response:
        """The answer to a request that failed before anything was sent."""
        body = json.dumps(self.as_json()).encode()
        return Response(body, self.status, self.headers, media_type="application/json")


def refusal(rule: str, param: str, code: str | None = None) -> ApiError:
    """The error for a field whose value breaks a rule."""
    return ApiError(400, rule, param=param, code=code)


def as_api_error(error: BaseException) -> ApiError:
    """What a client is told of an error, whatever it is. One that is nobody's intention is logged here."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, QueueFullError):
        wait = {"Retry-After": str(math.ceil(error.retry_after_s))}
        return ApiError(429, _sentence(error), code="queue_full", headers=wait)
    if isinstance(error, ContextLengthError):
        return ApiError(400, _sentence(error), code="context_length_exceeded")
    if isinstance(error, JsonError):
        return ApiError(400, _sentence(error), code="invalid_json")
    if isinstance(error, UsageError | ModelError):
        return ApiError(400, _sentence(error), code="invalid_value")
    if isinstance(error, MemoryLimitError | MemoryError):
        return ApiError(503, _sentence(error) or "The computer has no memory left.", code="memory_limit")
    if isinstance(error, UnavailableError):
        return ApiError(503, _sentence(error), code="unavailable", headers={"Retry-After": "1"})
    _log.error("a request failed", exc_info=error)
    return ApiError(500, "The server failed at this request. Its log says why.", code="internal_error")


def _sentence(error: BaseException) -> str:
    """What to do about a model is for those who run the server; they read its log."""
    hint = error.hint if isinstance(error, BorradorError) and not isinstance(error, ModelError) else ""
    return f"{error}. {hint}".rstrip() if str(error) else ""
