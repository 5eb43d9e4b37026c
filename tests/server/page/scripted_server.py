"""A server for tests of the page: it speaks the API's format and says what the test tells it to.

Every answer is a script of steps. Rounds, tokens with markup in them, refusals and broken connections come when they
are wanted, which no model can promise.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from borrador.server.page import page_routes

Step = dict[str, Any]
Reply = Callable[[Request], Response | None]


@dataclass
class Script:
    """What the server does next, and what it has seen.

    Attributes:
        steps: of an answer, one chunk each.
        pause_s: before each of them.
        broken_after: steps after which the connection is cut; None never does.
        reply: a response in place of an answer, where it gives one.
        loading: the model is not there yet.
        key: the API key that is asked for; empty asks for none.
        speeds: what the server says it measured, with and without drafts.
        draft_tokens_proposed: since the server started.
        holds: no answer begins while it does and the client waits.
        requests: bodies of the requests for answers.
        writing: answers that are being written.
    """

    steps: Sequence[Step] = ()
    pause_s: float = 0.0
    broken_after: int | None = None
    reply: Reply = lambda request: None
    loading: bool = False
    key: str = ""
    speeds: tuple[float | None, float | None] = (None, None)
    draft_tokens_proposed: int = 1
    holds: bool = False
    requests: list[dict[str, Any]] = field(default_factory=list)
    writing: int = 0


def step(number: int, *tokens: tuple[str, str], refused: Sequence[str] = (), drafter: str = "suffix") -> Step:
    """A round as a chunk tells it: tokens with their origins, and those of the draft that were not accepted."""
    accepted = sum(origin == "draft" for _, origin in tokens)
    described = [_describe_token(number, text, origin, drafter) for text, origin in tokens]
    proposed = accepted + len(refused)
    summary = {
        "number": number,
        "proposed": proposed,
        "accepted": accepted,
        "drafter": drafter if proposed else "none",
        "refused": list(refused),
        "draft_ms": 0.2,
        "verify_ms": 6.4,
    }
    return {"tokens": described, "rounds": [summary]}


def plain_steps(text: str, first: int = 1) -> list[Step]:
    """An answer without drafts, a word a round, from the `first` round on."""
    words = text.replace(" ", "\0 ").split("\0")
    return [step(number, (word, "target")) for number, word in enumerate(words, first)]


def _describe_token(number: int, text: str, origin: str, drafter: str) -> dict[str, Any]:
    drafted = origin == "draft"
    return {
        "text": text,
        "token_id": 100 + len(text),
        "origin": origin,
        "round": number,
        "drafter": drafter if drafted else None,
        "draft_probability": 0.75 if drafted else None,
        "logprob": -0.105,
    }


MUSEUM = [
    step(1, ("The", "target")),
    step(2, (" museum", "draft"), (" is", "draft"), (" open", "bonus")),
    step(3, (" from", "draft"), (" Tuesday", "target"), refused=[" Monday", " to"]),
    step(4, (" on", "grammar"), (".", "target")),
]
MUSEUM_TEXT = "The museum is open from Tuesday on."


def create_scripted_app(script: Script) -> Starlette:
    async def models(request: Request) -> Response:
        return JSONResponse({"object": "list", "data": [{"id": "scripted", "object": "model"}]})

    async def stats(request: Request) -> Response:
        speculative, plain = script.speeds
        return JSONResponse(
            {
                "tokens_per_second_speculative": speculative,
                "tokens_per_second_plain": plain,
                "draft_tokens_proposed": script.draft_tokens_proposed,
            }
        )

    async def answer(request: Request) -> Response:
        script.requests.append(await request.json())
        while script.holds and not await request.is_disconnected():
            await asyncio.sleep(0.01)
        return script.reply(request) or StreamingResponse(_stream(script), media_type="text/event-stream")

    routes = [
        Route("/v1/models", _guarded(script, models)),
        Route("/v1/borrador/stats", _guarded(script, stats)),
        Route("/v1/chat/completions", _guarded(script, answer), methods=["POST"]),
    ]
    return Starlette(routes=[*page_routes(), *routes])


def refuse(status: int, message: str, **headers: str) -> Response:
    return JSONResponse({"error": {"message": message}}, status, {k.replace("_", "-"): v for k, v in headers.items()})


def _guarded(script: Script, endpoint: Any) -> Any:
    async def check(request: Request) -> Response:
        if script.key and request.headers.get("Authorization") != f"Bearer {script.key}":
            return refuse(401, "no API key")
        if script.loading:
            return refuse(503, "The model is being loaded.")
        response: Response = await endpoint(request)
        return response

    return check


async def _stream(script: Script) -> AsyncIterator[bytes]:
    script.writing += 1
    try:
        yield _event(_chunk({"role": "assistant"}))
        for index, made in enumerate(script.steps):
            await asyncio.sleep(script.pause_s)
            if index == script.broken_after:
                raise ConnectionResetError
            text = "".join(token["text"] for token in made["tokens"])
            yield _event(_chunk({"content": text}) | {"speculative": made})
        yield _event(_chunk({}, "stop") | {"timings": {"predicted_per_second": 123.4}})
        yield b"data: [DONE]\n\n"
    finally:
        script.writing -= 1


def _chunk(delta: dict[str, str], finish_reason: str | None = None) -> dict[str, Any]:
    return {"id": "chatcmpl-1", "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]}


def _event(chunk: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(chunk)}\n\n".encode()


@contextmanager
def serving(app: ASGIApp) -> Iterator[str]:
    """The app on a free port of this machine, as a base URL."""
    config = uvicorn.Config(app, host="127.0.0.1", port=0, log_level="critical", lifespan="off")
    server = uvicorn.Server(config)
    sock = config.bind_socket()
    thread = threading.Thread(target=server.run, args=([sock],))
    thread.start()
    try:
        yield f"http://127.0.0.1:{sock.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
