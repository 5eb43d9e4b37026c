"""What is known of a server's answer: by its own figures, else by the clock here."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from borrador.chat.backend import Figures
from borrador.remote.chunks import Chunk, number


class Tally:
    """Adds up what events say of an answer.

    Args:
        start: when the question was sent.

    Attributes:
        plain_speed: tokens per second without drafts, where that is known.
    """

    def __init__(self, start: float) -> None:
        self._start = start
        self._first_s: float | None = None
        self._last_s = 0.0
        self._finish_reason = "cancelled"
        self._usage: Mapping[str, Any] = {}
        self._timings: Mapping[str, Any] = {}
        self.plain_speed: float | None = None

    @property
    def drafted(self) -> bool:
        """The server says that drafts were made."""
        return bool(number(self._timings, "draft_n"))

    def add(self, chunk: Chunk) -> None:
        """Count an event as it comes."""
        if chunk.text or chunk.reasoning:
            self._last_s = time.perf_counter() - self._start
            self._first_s = self._last_s if self._first_s is None else self._first_s
        self._finish_reason = chunk.finish_reason or self._finish_reason
        self._usage = chunk.usage or self._usage
        self._timings = chunk.timings or self._timings

    @property
    def figures(self) -> Figures:
        """What is known so far."""
        speed = self._speed()
        return Figures(
            finish_reason=self._finish_reason,
            prompt_tokens=_count(self._usage, "prompt_tokens"),
            tokens=_count(self._usage, "completion_tokens"),
            tokens_per_second=speed,
            first_token_s=self._first_s,
            draft_tokens_tested=_count(self._timings, "draft_n"),
            draft_tokens_accepted=_count(self._timings, "draft_n_accepted"),
            speedup=speed / self.plain_speed if speed and self.plain_speed else None,
        )

    def _speed(self) -> float | None:
        told = number(self._timings, "predicted_per_second")
        tokens = _count(self._usage, "completion_tokens")
        if told is not None or tokens is None or self._first_s is None or self._last_s <= self._first_s:
            return told
        return (tokens - 1) / (self._last_s - self._first_s)


def _count(figures: Mapping[str, Any], name: str) -> int | None:
    value = number(figures, name)
    return None if value is None else int(value)
