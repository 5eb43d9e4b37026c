"""The pieces of streams as bytes. A stream has one for every step of its answer, so they are put together by hand."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol

from borrador import __version__
from borrador.server.choice import Piece
from borrador.server.logprobs import TokenNames
from borrador.server.tools import Call

FINGERPRINT = f"borrador-{__version__}"
DONE = b"data: [DONE]\n\n"
PING = b": ping\n\n"


class Head:
    """What all parts of an answer begin with.

    Args:
        kind: of answer, as the beginning of its id.
        model: its name.
    """

    def __init__(self, kind: str, model: str) -> None:
        self.id = f"{kind}-{secrets.token_hex(12)}"
        self.created = int(time.time())
        self.model = model

    def as_json(self, kind: str) -> dict[str, Any]:
        """Of a part that is an object of this kind."""
        return {
            "id": self.id,
            "object": kind,
            "created": self.created,
            "model": self.model,
            "system_fingerprint": FINGERPRINT,
        }


class Chunks(Protocol):
    """Writes the chunks of a stream."""

    def first(self, index: int) -> bytes:
        """What an answer begins with; may be nothing."""

    def piece(self, index: int, piece: Piece) -> bytes:
        """What is new of an answer; may be nothing."""

    def last(self, index: int, reason: str, costs: Mapping[str, Any]) -> bytes:
        """That an answer has ended, and what it cost."""

    def usage(self, usage: Mapping[str, Any]) -> bytes:
        """Tokens of all answers."""


class ChatChunks:
    """Chunks of chats.

    Args:
        head: of the answer.
        names: of tokens.
        counts: a last chunk will tell the usage, so the others say that they do not.
    """

    def __init__(self, head: Head, names: TokenNames, *, counts: bool) -> None:
        self._names = names
        self._begin, self._end = _frame(head, "chat.completion.chunk", counts)
        self._calls: dict[int, int] = {}

    def first(self, index: int) -> bytes:
        return self._chunk(index, '{"role":"assistant"}')

    def piece(self, index: int, piece: Piece) -> bytes:
        text = self._text(index, piece)
        return text + b"".join([self._call(index, call) for call in piece.calls])

    def last(self, index: int, reason: str, costs: Mapping[str, Any]) -> bytes:
        return self._chunk(index, "{}", reason=json.dumps(reason), more=f",{json.dumps(costs)[1:-1]}")

    def usage(self, usage: Mapping[str, Any]) -> bytes:
        return f'{self._begin}],"usage":{json.dumps(usage)}}}\n\n'.encode()

    def _text(self, index: int, piece: Piece) -> bytes:
        if not piece.text and not piece.logprobs and piece.trace is None:
            return b""
        logprobs = "null" if piece.logprobs is None else json.dumps(self._names.as_chat(piece.logprobs))
        more = "" if piece.trace is None else f',"speculative":{json.dumps(piece.trace)}'
        return self._chunk(index, f'{{"content":{json.dumps(piece.text)}}}', logprobs=logprobs, more=more)

    def _call(self, index: int, call: Call) -> bytes:
        """A first delta with id and name, and further ones with pieces of the arguments."""
        if call.is_rest:
            part = {"index": self._calls[index] - 1, "function": {"arguments": call.arguments}}
            return self._chunk(index, json.dumps({"tool_calls": [part]}))
        number = self._calls.get(index, 0)
        self._calls[index] = number + 1
        begun = {"index": number, **replace(call, arguments="").as_json()}
        first = self._chunk(index, json.dumps({"tool_calls": [begun]}))
        return first + self._call(index, replace(call, is_rest=True)) if call.arguments else first

    def _chunk(self, index: int, delta: str, *, logprobs: str = "null", reason: str = "null", more: str = "") -> bytes:
        choice = f'{{"index":{index},"delta":{delta},"logprobs":{logprobs},"finish_reason":{reason}}}'
        return f"{self._begin}{choice}]{more}{self._end}".encode()


class CompletionChunks:
    """Chunks of completions. Arguments as for `ChatChunks`."""

    def __init__(self, head: Head, names: TokenNames, *, counts: bool) -> None:
        self._names = names
        self._begin, self._end = _frame(head, "text_completion", counts)
        self._offsets: dict[int, int] = {}

    def first(self, index: int) -> bytes:  # noqa: ARG002 - nothing comes before the text
        return b""

    def piece(self, index: int, piece: Piece) -> bytes:
        if not piece.text and not piece.logprobs:
            return b""
        logprobs = "null"
        if piece.logprobs is not None:
            offset = self._offsets.get(index, 0)
            logprobs = json.dumps(self._names.as_completion(piece.logprobs, offset))
            self._offsets[index] = offset + sum(len(entry.text) for entry in piece.logprobs)
        return self._chunk(index, json.dumps(piece.text), logprobs=logprobs)

    def last(self, index: int, reason: str, costs: Mapping[str, Any]) -> bytes:
        return self._chunk(index, '""', reason=json.dumps(reason), more=f",{json.dumps(costs)[1:-1]}")

    def usage(self, usage: Mapping[str, Any]) -> bytes:
        return f'{self._begin}],"usage":{json.dumps(usage)}}}\n\n'.encode()

    def _chunk(self, index: int, text: str, *, logprobs: str = "null", reason: str = "null", more: str = "") -> bytes:
        choice = f'{{"index":{index},"text":{text},"logprobs":{logprobs},"finish_reason":{reason}}}'
        return f"{self._begin}{choice}]{more}{self._end}".encode()


def error_event(error: Mapping[str, Any]) -> bytes:
    """Ends a stream whose answer failed."""
    return f"event: error\ndata: {json.dumps(error)}\n\n".encode()


def _frame(head: Head, kind: str, counts: bool) -> tuple[str, str]:
    begin = json.dumps(head.as_json(kind), separators=(",", ":"))[:-1]
    usage = ',"usage":null' if counts else ""
    return f'data: {begin},"choices":[', f"{usage}}}\n\n"
