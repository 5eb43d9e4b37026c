"""One answer of a request, from events to what its client reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from borrador.engine.batch import Progress
from borrador.server.accounts import Speculation
from borrador.server.logprobs import Entry, LogprobTrail, TokenNames
from borrador.server.tool_syntax import HERMES, Syntax
from borrador.server.tools import Call, CallReader
from borrador.server.trace import trace_of
from borrador.text.tokenizer import Tokenizer


@dataclass(slots=True)
class Piece:
    """What is new of an answer.

    Attributes:
        text: that was written.
        calls: of tools, or parts of them.
        logprobs: of the text's tokens; None where nobody asked.
        trace: of the text's tokens; None where nobody asked.
        finish_reason: why the answer ended; None while it goes on.
    """

    text: str = ""
    calls: list[Call] = field(default_factory=list)
    logprobs: list[Entry] | None = None
    trace: dict[str, Any] | None = None
    finish_reason: str | None = None


class Choice:
    """Follows an answer.

    Args:
        names: of tokens.
        trail: follows log probabilities; None where nobody asked for them.
        traces: tell where tokens came from.
        reader: finds calls of tools; None where there are none.
        echo: what the answer begins with before anything was written.
    """

    def __init__(
        self,
        names: TokenNames,
        *,
        trail: LogprobTrail | None = None,
        traces: bool = False,
        reader: CallReader | None = None,
        echo: str = "",
    ) -> None:
        self.speculation = Speculation()
        self._names = names
        self._trail = trail
        self._traces = traces
        self._reader = reader
        self._echo = echo

    def take(self, progress: Progress) -> Piece:
        """What a step brought. Raises the error that ended the answer."""
        if progress.error is not None:
            raise progress.error
        events = progress.events
        self.speculation.take(events)
        text = self._echo + "".join([event.text for event in events])
        self._echo = ""
        piece = Piece(text, finish_reason=events[-1].finish_reason)
        if self._trail is not None:
            piece.logprobs = self._trail.take(events)
        if self._traces:
            piece.trace = trace_of(events, self._names)
        if self._reader is not None:
            self._read_calls(self._reader, piece)
        return piece

    def _read_calls(self, reader: CallReader, piece: Piece) -> None:
        piece.text, piece.calls = reader.take(piece.text, ended=piece.finish_reason is not None)
        if piece.finish_reason == "stop" and reader.found:
            piece.finish_reason = "tool_calls"


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How the answers of a request are told.

    Attributes:
        logprobs: of how many likely tokens, beside those written; None tells none.
        traces: where tokens came from.
        tools: names of those that may be called; empty where there are none.
        syntax: how the model writes calls.
        streams: calls are told while they are written.
        echoes: what answers begin with, for each prompt; none where nothing is repeated.
    """

    logprobs: int | None = None
    traces: bool = False
    tools: frozenset[str] = frozenset()
    syntax: Syntax = HERMES
    streams: bool = False
    echoes: Sequence[str] = ()

    def choices(self, count: int, tokenizer: Tokenizer, names: TokenNames) -> Sequence[Choice]:
        """One for each answer."""
        return [
            Choice(
                names,
                trail=None if self.logprobs is None else LogprobTrail(tokenizer),
                traces=self.traces,
                reader=CallReader(self.tools, self.syntax, streams=self.streams) if self.tools else None,
                echo=self.echoes[index * len(self.echoes) // count] if self.echoes else "",
            )
            for index in range(count)
        ]
