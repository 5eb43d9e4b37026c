"""Log probabilities as clients get them: the tokens' texts joined are the answer's text, wherever it was cut."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from borrador.text.tokenizer import Tokenizer
from borrador.types import GenerationEvent, TokenLogprobs

LEAST = -9999.0  # JSON has no minus infinity; OpenAI writes this


@dataclass(frozen=True, slots=True)
class Entry:
    """A token of the text.

    Attributes:
        text: what it adds; a character in several tokens belongs to the last of them.
        data: its own bytes.
        logprobs: of it and of the likely tokens in its place.
    """

    text: str
    data: bytes
    logprobs: TokenLogprobs


class LogprobTrail:
    """Follows an answer. An entry comes out once its text is certain, as a stop string may still take it away.

    Args:
        tokenizer: of the model.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._pending: list[Entry] = []
        self._certain = 0  # characters of the pending texts

    def take(self, events: Iterable[GenerationEvent]) -> list[Entry]:
        """The entries that are certain after these events."""
        ended = False
        for event in events:
            self._certain += len(event.text)
            ended = event.finish_reason is not None
            if event.logprobs is not None:
                data = self._tokenizer.token_bytes(event.logprobs.token_id)
                self._pending.append(Entry(self._decoder.decode(data), data, event.logprobs))
        if ended and self._pending:
            last = self._pending[-1]
            self._pending[-1] = Entry(last.text + self._decoder.decode(b"", final=True), last.data, last.logprobs)
        return [*self._release(), *(self._cut() if ended else ())]

    def _release(self) -> list[Entry]:
        count = 0
        while count < len(self._pending) and len(self._pending[count].text) <= self._certain:
            self._certain -= len(self._pending[count].text)
            count += 1
        released, self._pending = self._pending[:count], self._pending[count:]
        return released

    def _cut(self) -> list[Entry]:
        """The token in which the text ends, without the rest of it."""
        if not self._pending or not self._certain:
            return []
        cut = self._pending[0].text[: self._certain]
        return [Entry(cut, cut.encode(), self._pending[0].logprobs)]


class TokenNames:
    """Tokens as clients read them, each worked out once. Not for several threads.

    Args:
        tokenizer: of the model.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._known: dict[int, tuple[str, list[int]]] = {}

    def name(self, token_id: int) -> str:
        """A token's text; bytes that are no whole character become U+FFFD."""
        return self._look_up(token_id)[0]

    def as_chat(self, entries: Sequence[Entry]) -> dict[str, Any]:
        """As `logprobs` of a chat."""
        return {"content": [self._chat_entry(entry) for entry in entries], "refusal": None}

    def as_completion(self, entries: Sequence[Entry], offset: int) -> dict[str, Any]:
        """As `logprobs` of a completion, for a text that begins so many characters into the answer."""
        offsets = []
        for entry in entries:
            offsets.append(offset)
            offset += len(entry.text)
        return {
            "tokens": [entry.text for entry in entries],
            "token_logprobs": [_finite(entry.logprobs.logprob) for entry in entries],
            "top_logprobs": [
                {self.name(token): _finite(logprob) for token, logprob in reversed(entry.logprobs.top)}
                for entry in entries
            ],
            "text_offset": offsets,
            "bytes": [list(entry.data) for entry in entries],
        }

    def _chat_entry(self, entry: Entry) -> dict[str, Any]:
        top = [
            {"token": name, "logprob": _finite(logprob), "bytes": data}
            for token, logprob in entry.logprobs.top
            for name, data in (self._look_up(token),)
        ]
        logprob = _finite(entry.logprobs.logprob)
        return {"token": entry.text, "logprob": logprob, "bytes": list(entry.data), "top_logprobs": top}

    def _look_up(self, token_id: int) -> tuple[str, list[int]]:
        if token_id not in self._known:
            data = self._tokenizer.token_bytes(token_id)
            shown = data.decode(errors="replace") or self._tokenizer.token_text(token_id)
            self._known[token_id] = shown, list(data)
        return self._known[token_id]


def _finite(logprob: float) -> float:
    return max(logprob, LEAST)
