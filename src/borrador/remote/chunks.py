"""The events of a streamed answer, as the OpenAI API sends them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from borrador.errors import BorradorError
from borrador.remote.refusal import RefusedError, error_fields, one_line
from borrador.types import Origin

_ORIGINS = {origin.value: origin for origin in Origin}


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """One event.

    Attributes:
        text: that the answer goes on with.
        tokens: text and origin of its tokens, where the server tells them; their texts joined are `text`.
        reasoning: whether it brought text that is not part of the answer.
        finish_reason: on the last event with text, or after it.
        usage: `prompt_tokens`, `completion_tokens`, where the server tells them.
        timings: llama.cpp's figures of the whole answer, where the server tells them.
    """

    text: str = ""
    tokens: tuple[tuple[str, Origin | None], ...] = ()
    reasoning: bool = False
    finish_reason: str | None = None
    usage: Mapping[str, Any] = field(default_factory=dict)
    timings: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, entry: Mapping[str, Any]) -> Chunk:
        """What a JSON object says; what is not as the API has it counts as absent."""
        choices = entry.get("choices")
        choice = _mapping(choices[0]) if isinstance(choices, list) and choices else {}
        delta = _mapping(choice.get("delta"))
        return cls(
            text=_text(delta.get("content")),
            tokens=tuple(_tokens(_mapping(entry.get("speculative")).get("tokens"))),
            reasoning=bool(_text(delta.get("reasoning_content")) or _text(delta.get("reasoning"))),
            finish_reason=_text(choice.get("finish_reason")) or None,
            usage=_mapping(entry.get("usage")),
            timings=_mapping(entry.get("timings")),
        )


class ChunkReader:
    """Reads the lines of a stream of server-sent events.

    Attributes:
        ended: the answer came to its end.
    """

    def __init__(self) -> None:
        self.ended = False

    def read(self, line: str) -> Chunk | None:
        """The chunk of a line; None for lines that carry none.

        Raises:
            RefusedError: the server reports an error in the middle of the answer.
            BorradorError: the line is not what the API sends.
        """
        if not line.startswith("data:"):
            return None
        data = line[len("data:") :].strip()
        if data == "[DONE]":
            self.ended = True
            return None
        entry = _parse(data)
        if fields := error_fields(entry):
            message = one_line(fields.get("message")) or "it gave no reason"
            raise RefusedError(f"the server cut the answer off: {message}", status=200, fields=fields)
        chunk = Chunk.of(entry)
        self.ended = self.ended or chunk.finish_reason is not None
        return chunk

    def require_end(self) -> None:
        """Raise BorradorError where the stream is over and the answer is not."""
        if not self.ended:
            raise BorradorError("the server cut the answer off: its stream ended early", "Look at the server's log.")


def split_lines(blocks: Iterable[bytes]) -> Iterator[str]:
    """The lines of a stream of events: unlike in text in general, only line feeds end them."""
    rest = b""
    for block in blocks:
        *lines, rest = (rest + block).split(b"\n")
        yield from (line.decode("utf-8", "replace") for line in lines)
    yield rest.decode("utf-8", "replace")


def number(figures: Mapping[str, Any], name: str) -> float | None:
    """A figure that the server gave; None where it gave none."""
    value = figures.get(name)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _parse(data: str) -> Mapping[str, Any]:
    try:
        entry = json.loads(data)
    except (ValueError, RecursionError):
        entry = None
    if not isinstance(entry, dict):
        raise BorradorError(f"the server sent an event that is not JSON: {data!r:.80}", "Is it OpenAI-compatible?")
    return entry


def _tokens(entries: object) -> list[tuple[str, Origin | None]]:
    if not isinstance(entries, list):
        return []
    pairs = (_mapping(entry) for entry in entries)
    return [(_text(pair.get("text")), _ORIGINS.get(_text(pair.get("origin")))) for pair in pairs]


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    """A text that can be written as UTF-8: JSON may spell out half of a surrogate pair."""
    if not isinstance(value, str):
        return ""
    return value if value.isascii() else value.encode("utf-8", "replace").decode()
