"""The questions and answers of a chat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from borrador.types import Message


@dataclass(frozen=True, slots=True)
class Exchange:
    """A question and its answer; `stopped` where that was not written to its end."""

    question: str
    answer: str
    stopped: bool = False


@dataclass(slots=True)
class Conversation:
    """Exchanges one after another; nothing is ever dropped from it unasked."""

    system: str | None = None
    exchanges: list[Exchange] = field(default_factory=list)

    def messages(self, question: str, exchanges: Sequence[Exchange] | None = None) -> list[Message]:
        """What a model is shown: the system's message, the exchanges (None: all), the question."""
        shown: list[Message] = [] if self.system is None else [{"role": "system", "content": self.system}]
        for exchange in self.exchanges if exchanges is None else exchanges:
            shown.append({"role": "user", "content": exchange.question})
            shown.append({"role": "assistant", "content": exchange.answer})
        return [*shown, {"role": "user", "content": question}]
