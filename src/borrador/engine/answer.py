"""The text of an answer while it grows, and where it ends."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from borrador.text.stops import StopDetector
from borrador.types import FinishReason


class TextStream(Protocol):
    """Turns token ids into text; see `borrador.text.detokenizer.Detokenizer`."""

    def push(self, token_id: int) -> str: ...

    def flush(self) -> str: ...


class Shape(Protocol):
    """Follows the answer and knows when it cannot go on; see `borrador.grammar.matcher.Matcher`."""

    def commit(self, token: int) -> None: ...

    def is_complete(self) -> bool: ...


class Answer:
    """Takes tokens until the answer ends: at an end-of-generation token, a stop string, the end of its shape, or the
    last allowed token.

    They are looked for in this order at every token. The end-of-generation token is not part of the answer; the token
    that completes a stop string is, though the text stops before the string. Stop strings are looked for in the text
    behind the first `least` tokens.

    Args:
        detokenizer: a fresh one.
        stop: strings that end the text.
        end_ids: tokens that end the answer.
        capacity: the most tokens the answer may have, at least 1.
        shape: what the answer must look like; told every token of it.
        least: the fewest tokens it must have before it ends otherwise; end tokens must not come before.

    Attributes:
        finish_reason: why the answer ended; None while it goes on.
        texts: one text per token of the last `take`.
        tail: text that was held back until the end was certain.
    """

    def __init__(
        self,
        detokenizer: TextStream,
        *,
        stop: Sequence[str],
        end_ids: Collection[int],
        capacity: int,
        shape: Shape | None = None,
        least: int = 0,
    ) -> None:
        self.finish_reason: FinishReason | None = None
        self.texts: list[str] = []
        self.tail = ""
        self._detokenizer = detokenizer
        self._stops = StopDetector(stop)
        self._end_ids = end_ids
        self._left = capacity
        self._shape = shape
        self._unchecked = least

    def room(self) -> int:
        return self._left

    def take(self, tokens: Sequence[int]) -> int:
        self.texts = []
        for token in tokens:
            if token in self._end_ids:
                self._finish("stop")
            else:
                self._push(token)
            if self.finish_reason is not None:
                break
        return len(self.texts)

    def expire(self) -> str:
        """End the answer here, since its time is over; the text that was held back."""
        self._finish("timeout")
        return self.tail

    def _push(self, token: int) -> None:
        text, stopped = self._detokenizer.push(token), False
        if self._unchecked:
            self._unchecked -= 1
        else:
            text, stopped = self._stops.push(text)
        self.texts.append(text)
        self._left -= 1
        if stopped:
            self.finish_reason = "stop"
        elif self._completes_shape(token):
            self._finish("stop")
        elif self._left == 0:
            self._finish("length")

    def _completes_shape(self, token: int) -> bool:
        if self._shape is None:
            return False
        self._shape.commit(token)
        return self._shape.is_complete()

    def _finish(self, reason: FinishReason) -> None:
        text, _ = self._stops.push(self._detokenizer.flush())
        self.tail = text + self._stops.flush()
        self.finish_reason = reason
