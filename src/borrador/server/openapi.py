"""The API described for programs, from the same models that check its requests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, Response

from borrador import __version__
from borrador.server import schemas_out as out
from borrador.server.schemas_chat import ChatRequest
from borrador.server.schemas_text import CompletionRequest, DetokenizeRequest, TokenizeRequest

_REF = "#/components/schemas/{model}"
_EVENT = {
    "type": "object",
    "description": "A chunk as JSON; [DONE] at the end, or an event named error.",
    "properties": {"event": {"type": "string", "enum": ["message", "error"]}, "data": {"type": "string"}},
    "required": ["data"],
}
_FAULTS = {
    "400": "A field breaks a rule, or the prompt is too long.",
    "401": "An API key is needed.",
    "403": "The host or origin is not allowed.",
    "404": "There is no such model.",
    "408": "The body took too long.",
    "413": "The body is too large.",
    "415": "The body is compressed.",
    "429": "The queue is full; Retry-After says when to come again.",
    "503": "The server is loading, ending, or short of memory.",
}


@dataclass(frozen=True, slots=True)
class Operation:
    """What can be asked for at a path.

    Attributes:
        path: of it.
        summary: in a sentence.
        answer: what comes back.
        body: what is sent; None where nothing is, and the method is GET.
        streams: it can come back as server-sent events.
    """

    path: str
    summary: str
    answer: type[BaseModel]
    body: type[BaseModel] | None = None
    streams: bool = False


OPERATIONS = (
    Operation("/v1/chat/completions", "Continue a conversation.", out.ChatCompletion, ChatRequest, streams=True),
    Operation("/v1/completions", "Continue texts.", out.Completion, CompletionRequest, streams=True),
    Operation("/v1/models", "List the models.", out.ModelList),
    Operation("/v1/models/{id}", "Describe a model.", out.ModelCard),
    Operation("/v1/borrador/stats", "Tell what was counted and measured.", out.Stats),
    Operation("/tokenize", "Give the tokens of a prompt.", out.Tokens, TokenizeRequest),
    Operation("/detokenize", "Give the text of tokens.", out.Text, DetokenizeRequest),
    Operation("/health", "Tell whether the server runs.", out.Status),
    Operation("/health/ready", "Tell whether it takes requests.", out.Status),
    Operation("/version", "Tell the version.", out.Version),
)


async def document(_http: HttpRequest) -> Response:
    """`/openapi.json`."""
    return JSONResponse(describe())


@cache
def describe() -> dict[str, Any]:
    """The whole description."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "borrador", "version": __version__},
        "paths": {operation.path: _describe(operation) for operation in OPERATIONS},
        "components": {
            "schemas": _schemas(),
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"key": []}],
    }


def _schemas() -> dict[str, Any]:
    models: set[type[BaseModel]] = {out.ErrorBody}
    models |= {model for each in OPERATIONS for model in (each.answer, each.body) if model is not None}
    ordered = sorted(models, key=lambda model: model.__name__)
    _, schema = models_json_schema([(model, "validation") for model in ordered], ref_template=_REF)
    definitions: dict[str, Any] = schema["$defs"]
    return definitions


def _describe(operation: Operation) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": operation.path.strip("/").replace("/", "_").replace("{", "").replace("}", ""),
        "summary": operation.summary,
        "responses": dict(_responses(operation)),
    }
    if "{id}" in operation.path:
        described["parameters"] = [{"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}]
    if operation.body is None:
        return {"get": described}
    described["requestBody"] = {"required": True, "content": _json(operation.body)}
    return {"post": described}


def _responses(operation: Operation) -> Iterator[tuple[str, Any]]:
    streams = {"text/event-stream": {"schema": _EVENT}} if operation.streams else {}
    yield "200", {"description": "The answer.", "content": {**_json(operation.answer), **streams}}
    for status, description in _FAULTS.items():
        answer = out.Status if operation.path == "/health/ready" and status == "503" else out.ErrorBody
        yield status, {"description": description, "content": _json(answer)}


def _json(model: type[BaseModel]) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": _REF.format(model=model.__name__)}}}
