"""Who writes the answers of a chat: the contract, and the figures of an answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from borrador.chat.settings import Settings
from borrador.types import Message, Origin


class Span(NamedTuple):
    """Text of an answer, and where it came from; None where that is not known."""

    text: str
    origin: Origin | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What is known of an answer; None for what is not.

    Attributes:
        finish_reason: as the API names it: `stop`, `length`; `cancelled` for an answer that was stopped.
        prompt_tokens: of the whole conversation before it.
        tokens: of the answer.
        tokens_per_second: of decoding, without the first token.
        first_token_s: from the question to the first text.
        target_passes: that it took.
        draft_tokens_tested: compared with the target's choice.
        draft_tokens_accepted: of them.
        speedup: over decoding without drafts, as that was measured.
    """

    finish_reason: str = "cancelled"
    prompt_tokens: int | None = None
    tokens: int | None = None
    tokens_per_second: float | None = None
    first_token_s: float | None = None
    target_passes: int | None = None
    draft_tokens_tested: int | None = None
    draft_tokens_accepted: int | None = None
    speedup: float | None = None


class Reply(Iterator[Sequence[Span]], Protocol):
    """An answer while it is written: in each step the text that became certain together."""

    @property
    def figures(self) -> Figures:
        """What it cost so far."""
        ...

    def close(self) -> None:
        """Stop writing. Safe to call twice."""
        ...


class Backend(Protocol):
    """Writes answers."""

    @property
    def name(self) -> str:
        """What it is, for people."""
        ...

    @property
    def context_length(self) -> int | None:
        """The most tokens of a conversation; None where it is not known."""
        ...

    @property
    def tells_origins(self) -> bool:
        """Whether it can say where tokens came from."""
        ...

    def require(self, settings: Settings) -> None:
        """Raise UsageError for settings that would have no effect here."""
        ...

    def answer(self, messages: Sequence[Message], settings: Settings, *, origins: bool) -> Reply:
        """Begin an answer.

        Args:
            messages: the conversation, which ends with a question.
            settings: how to write.
            origins: tell where tokens came from, where that is possible.

        Raises:
            ContextLengthError: the conversation leaves no room for an answer.
            BorradorError: it cannot be written.
        """
        ...
