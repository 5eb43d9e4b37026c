"""The server as an ASGI app: every path with what answers it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from borrador.errors import BorradorError
from borrador.server.bridge import Bridge
from borrador.server.chat import ChatForm
from borrador.server.completions import CompletionForm
from borrador.server.endpoint import AnswerEndpoint, Pace
from borrador.server.errors import ApiError, as_api_error
from borrador.server.lookups import Lookups
from borrador.server.openapi import document
from borrador.server.telling import Observer

Endpoint = Callable[[HttpRequest], Awaitable[Response]]


def create_app(
    bridge: Bridge,
    *,
    routes: Sequence[BaseRoute] = (),
    observer: Observer | None = None,
    pace: Pace | None = None,
) -> Starlette:
    """The app, without what guards it.

    Args:
        bridge: to the model and what writes its answers; it may be opened later.
        routes: further ones, such as those of metrics and of the page.
        observer: told what becomes of every answer.
        pace: decides when the steps of a stream are told; None tells them as they come.
    """
    lookups, config = Lookups(bridge), bridge.config
    chat = AnswerEndpoint(ChatForm(config), bridge, observer, pace)
    completions = AnswerEndpoint(CompletionForm(config), bridge, observer, pace)
    own = [
        Route("/v1/chat/completions", chat, methods=["POST"]),
        Route("/v1/completions", completions, methods=["POST"]),
        Route("/v1/models", lookups.models),
        Route("/v1/models/{id:path}", lookups.model),
        Route("/v1/borrador/stats", lookups.stats),
        Route("/tokenize", lookups.tokenize, methods=["POST"]),
        Route("/detokenize", lookups.detokenize, methods=["POST"]),
        Route("/health", lookups.health),
        Route("/health/ready", lookups.ready),
        Route("/version", lookups.version),
        Route("/openapi.json", document),
    ]
    handlers = {HTTPException: _unrouted, ApiError: _failed, BorradorError: _failed, Exception: _failed}
    return Starlette(routes=[*own, *routes], exception_handlers=handlers)


async def _unrouted(http: HttpRequest, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    allowed = dict(error.headers or {}) if isinstance(error, HTTPException) else {}
    message = {
        404: f"There is nothing at {http.url.path!r:.200}. See /openapi.json.",
        405: f"{http.method:.20} is not possible at {http.url.path!r:.200}, {allowed.get('Allow')} is.",
    }.get(status, str(error))
    code = {404: "not_found", 405: "method_not_allowed"}.get(status)
    return ApiError(status, message, code=code, headers=allowed).response()


async def _failed(_http: HttpRequest, error: Exception) -> Response:
    return as_api_error(error).response()
