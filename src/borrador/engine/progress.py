"""What steps bring: to requests, and in numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from borrador.engine.member import Member
from borrador.types import GenerationEvent


@dataclass(frozen=True, slots=True)
class Progress:
    """What a step brought for one request.

    Attributes:
        key: of the request.
        events: of its answer.
        error: why it failed, and ended; None where it did not.
    """

    key: int
    events: Sequence[GenerationEvent] = ()
    error: Exception | None = None

    @property
    def tokens(self) -> int:
        """How many were written."""
        return sum(len(event.token_ids) for event in self.events)


@dataclass(slots=True)
class Census:
    """Passes so far, and their rows.

    Attributes:
        passes: of the target.
        rows: in all of them.
        prompt_rows: of these, pieces of prompts that did not yet lead to a token.
        draft_rows: of these, tokens of drafts.
        preemptions: requests that had to make room for older ones.
    """

    passes: int = 0
    rows: int = 0
    prompt_rows: int = 0
    draft_rows: int = 0
    preemptions: int = 0

    def count(self, members: Sequence[Member]) -> int:
        """Add a pass over the rows of these; how many they are."""
        pieces = [len(member.rows.tokens) for member in members if member.rows is not None and member.round is None]
        played = [member.round for member in members if member.rows is not None and member.round is not None]
        drafted = sum(len(each.draft.tokens) for each in played)
        rows = sum(pieces) + sum(each.pending for each in played) + drafted
        self.passes += bool(rows)
        self.rows += rows
        self.prompt_rows += sum(pieces)
        self.draft_rows += drafted
        return rows
