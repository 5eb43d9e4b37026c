"""Tells a client the answers to its request: as a stream while they are written, or whole once they are."""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from starlette.types import Send

from borrador.engine.batch import Progress
from borrador.server.accounts import Speculation, timings_of, usage_of
from borrador.server.answers import Answers, ClientGoneError, Step
from borrador.server.choice import Choice, Piece
from borrador.server.chunks import DONE, PING, Chunks, error_event
from borrador.server.errors import as_api_error
from borrador.types import GenerationStats

Next = Callable[[], Awaitable[Step]]

_STREAM_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),  # proxies pass it on as it comes
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of an answer.

    Attributes:
        reason: why it ended: a finish reason, `cancelled` where the client left, or `error`.
        stats: what it cost.
        speculation: its drafts.
        first_s: from admission to its first token; None where there was none.
        total_s: from admission to its end.
    """

    reason: str
    stats: GenerationStats
    speculation: Speculation
    first_s: float | None
    total_s: float


class Observer(Protocol):
    """Is told what becomes of answers."""

    def __call__(self, outcome: Outcome, /) -> None: ...


class Telling:
    """Turns what happens into what a client gets.

    Args:
        answers: of the request.
        choices: one for each answer.
        prompts: how many the answers belong to.
        observer: told of every answer.
    """

    def __init__(self, answers: Answers, choices: Sequence[Choice], prompts: int, observer: Observer | None) -> None:
        self._answers = answers
        self._choices = choices
        self._prompts = prompts
        self._observer = observer
        self._start = time.monotonic()
        self._first: dict[int, float] = {}
        self._open = set(range(len(choices)))

    async def stream(self, send: Send, chunks: Chunks, after: Next, *, counts: bool) -> None:
        """Send server-sent events. The response begins with the first thing there is to tell, so that a request which
        fails before that gets a status of its own.

        Args:
            send: to the client.
            chunks: writes them.
            after: gives the steps, as `Answers.next` does.
            counts: tell the usage at the end.
        """
        data = self._chunks_of(await after(), chunks)
        await send({"type": "http.response.start", "status": 200, "headers": _STREAM_HEADERS})
        try:
            while self._open:
                await _send_body(send, data)
                data = self._chunks_of(await after(), chunks)
            usage = chunks.usage(self._usage()) if counts else b""
            await _send_body(send, data + usage + DONE, more=False)
        except ClientGoneError:
            raise
        except Exception as error:  # noqa: BLE001 - the status is sent; all that is left is to say it in the stream
            await _send_body(send, error_event(as_api_error(error).as_json()), more=False)

    async def whole(self, send: Send, head: Mapping[str, Any], shape: Callable[[int, Piece], Any]) -> None:
        """Send one JSON object.

        Args:
            send: to the client.
            head: what it begins with.
            shape: gives the JSON of a choice.
        """
        pieces: list[list[Piece]] = [[] for _ in self._choices]
        while self._open:
            for index, progress in await self._answers.next():
                pieces[index].append(self._take(index, progress))
        choices = [shape(index, merge(of_one)) for index, of_one in enumerate(pieces)]
        body = json.dumps({**head, "choices": choices, "usage": self._usage(), **self._costs(range(len(pieces)))})
        await send_json(send, body.encode())

    def close(self) -> None:
        """Say what became of answers that did not come to their end."""
        for index in sorted(self._open):
            self._end(index, "cancelled")

    def _chunks_of(self, step: Step, chunks: Chunks) -> bytes:
        if not step:
            return PING
        return b"".join([self._chunk_of(index, progress, chunks) for index, progress in step])

    def _chunk_of(self, index: int, progress: Progress, chunks: Chunks) -> bytes:
        data = b"" if index in self._first else chunks.first(index)
        piece = self._take(index, progress)
        data += chunks.piece(index, piece)
        if piece.finish_reason is not None:
            data += chunks.last(index, piece.finish_reason, self._costs([index]))
        return data

    def _take(self, index: int, progress: Progress) -> Piece:
        self._first.setdefault(index, time.monotonic())
        try:
            piece = self._choices[index].take(progress)
        except Exception:
            self._end(index, "error")
            raise
        if piece.finish_reason is not None:
            self._end(index, piece.finish_reason)
        return piece

    def _end(self, index: int, reason: str) -> None:
        self._open.discard(index)
        if self._observer is not None:
            first = self._first.get(index)
            self._observer(
                Outcome(
                    reason=reason,
                    stats=self._answers.stats(index),
                    speculation=self._choices[index].speculation,
                    first_s=None if first is None else first - self._start,
                    total_s=time.monotonic() - self._start,
                )
            )

    def _usage(self) -> dict[str, Any]:
        return usage_of([self._answers.stats(index) for index in range(len(self._choices))], self._prompts)

    def _costs(self, indices: Sequence[int]) -> dict[str, Any]:
        speculation = Speculation()
        for index in indices:
            speculation.add(self._choices[index].speculation)
        stats = [self._answers.stats(index) for index in indices]
        return {"timings": timings_of(stats), "metrics": {"speculative_decoding": speculation.as_json()}}


def merge(pieces: Sequence[Piece]) -> Piece:
    """A whole answer from its pieces."""
    whole = Piece("".join([piece.text for piece in pieces]), finish_reason=pieces[-1].finish_reason)
    whole.calls = [call for piece in pieces for call in piece.calls]
    if pieces[0].logprobs is not None:
        whole.logprobs = [entry for piece in pieces for entry in piece.logprobs or ()]
    traces = [piece.trace for piece in pieces if piece.trace is not None]
    if traces:
        whole.trace = {name: [item for trace in traces for item in trace[name]] for name in ("tokens", "rounds")}
    return whole


async def send_json(send: Send, body: bytes) -> None:
    """A response of status 200."""
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await _send_body(send, body, more=False)


async def _send_body(send: Send, data: bytes, *, more: bool = True) -> None:
    if data or not more:
        await send({"type": "http.response.body", "body": data, "more_body": more})
