"""Endpoints that look something up and write nothing: models, tokens, health, version, numbers."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, Response

from borrador import __version__
from borrador.engine.requests import require_possible
from borrador.errors import ContextLengthError
from borrador.server.bridge import Bridge, Served
from borrador.server.conversation import as_turns
from borrador.server.endpoint import read_body, require_model
from borrador.server.errors import refusal
from borrador.server.schemas_text import DetokenizeRequest, TokenizeRequest


class Lookups:
    """The endpoints, one method each.

    Args:
        bridge: to what is served.
    """

    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge

    async def models(self, _http: HttpRequest) -> Response:
        """`/v1/models`."""
        return JSONResponse({"object": "list", "data": [_card(self._bridge.served)]})

    async def model(self, http: HttpRequest) -> Response:
        """`/v1/models/{id}`."""
        served = self._bridge.served
        require_model(http.path_params["id"], served)
        return JSONResponse(_card(served))

    async def tokenize(self, http: HttpRequest) -> Response:
        """`/tokenize`: the tokens that the model sees for a prompt."""
        body = await read_body(http, TokenizeRequest, self._bridge)
        served = self._bridge.served
        require_model(body.model, served)
        if (body.prompt is None) == (body.messages is None):
            raise refusal("prompt or messages must be given, and not both.", "prompt", "invalid_value")
        return await self._work(lambda: _tokenize(body, served))

    async def detokenize(self, http: HttpRequest) -> Response:
        """`/detokenize`: the text of tokens; control tokens have none."""
        body = await read_body(http, DetokenizeRequest, self._bridge)
        served = self._bridge.served
        require_model(body.model, served)
        size = served.llm.tokenizer.vocabulary_size
        unknown = next((token for token in body.tokens if token >= size), None)
        if unknown is not None:
            raise refusal(f"tokens must be below the vocabulary's {size} tokens, got {unknown}.", "tokens")
        return await self._work(lambda: {"prompt": served.llm.tokenizer.decode(body.tokens, starts_text=True)})

    async def health(self, _http: HttpRequest) -> Response:
        """`/health`: the server runs."""
        return JSONResponse({"status": "ok"})

    async def ready(self, _http: HttpRequest) -> Response:
        """`/health/ready`: it takes requests."""
        if self._bridge.is_ready:
            return JSONResponse({"status": "ok"})
        state = self._bridge.state if self._bridge.state != "ready" else "failed"
        return JSONResponse({"status": state}, 503)

    async def version(self, _http: HttpRequest) -> Response:
        """`/version`."""
        return JSONResponse({"version": __version__})

    async def stats(self, _http: HttpRequest) -> Response:
        """`/v1/borrador/stats`: what the scheduler has counted and measured."""
        return JSONResponse(asdict(self._bridge.served.scheduler.snapshot()))

    async def _work(self, call: Any) -> Response:
        return JSONResponse(await self._bridge.work(call))


def _card(served: Served) -> dict[str, Any]:
    llm = served.llm
    return {
        "id": served.name,
        "object": "model",
        "created": served.created,
        "owned_by": "borrador",
        "max_model_len": llm.context_length,
        "meta": {"n_ctx": llm.context_length, "n_vocab": llm.tokenizer.vocabulary_size},
    }


def _tokenize(body: TokenizeRequest, served: Served) -> dict[str, Any]:
    llm = served.llm
    prompt = body.prompt or "" if body.messages is None else llm.template.render(as_turns(body.messages))
    try:
        require_possible(prompt, llm.tokenizer, llm.context_length)
    except ContextLengthError as error:
        field = "prompt" if body.messages is None else "messages"
        raise refusal(f"{error}.", field, "context_length_exceeded") from None
    tokens = llm.tokenize(prompt)
    told = {"tokens": tokens, "count": len(tokens), "max_model_len": llm.context_length}
    return {**told, "token_strs": [llm.token_text(token) for token in tokens]} if body.return_token_strs else told
