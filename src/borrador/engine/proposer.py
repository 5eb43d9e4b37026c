"""Asks a request's drafters for a draft, in the order and length that the controller allows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from borrador.draft.protocol import DraftSession
from borrador.engine.controller import Turn
from borrador.types import Draft, Verdict


class DraftPlan(Protocol):
    """Decides who drafts how much; see `Controller`."""

    def plan(self, limit: int) -> Sequence[Turn]: ...

    def observe(self, drafter: str, tested: int, accepted: int) -> None: ...


class Proposer:
    """The draft sessions of one request behind one face.

    Args:
        sessions: by drafter name.
        plan: decides who drafts how much.
        vocabulary_size: of the target; a draft ends before the first token that lies outside.
    """

    def __init__(self, sessions: Mapping[str, DraftSession], plan: DraftPlan, vocabulary_size: int) -> None:
        self._sessions = sessions
        self._plan = plan
        self._vocabulary_size = vocabulary_size

    def propose(self, context: Sequence[int], limit: int) -> Draft:
        """The first draft that is not empty, at most `limit` tokens long."""
        for turn in self._plan.plan(limit):
            draft = self._usable(self._sessions[turn.drafter].propose(context, turn.budget), turn.budget)
            if draft.tokens:
                return draft
        return Draft()

    def observe(self, draft: Draft, verdict: Verdict, committed: Sequence[int]) -> None:
        """Let everyone learn how the round ended."""
        self._plan.observe(draft.drafter, verdict.tested, len(verdict.path))
        for session in self._sessions.values():
            session.observe(committed)

    def close(self) -> None:
        for session in self._sessions.values():
            session.close()

    def _usable(self, draft: Draft, budget: int) -> Draft:
        """What a drafter may have got wrong is cut off: too many tokens, or tokens that do not exist."""
        unknown = (index for index, token in enumerate(draft.tokens) if not 0 <= token < self._vocabulary_size)
        length = min(next(unknown, len(draft.tokens)), budget)
        if length == len(draft.tokens):
            return draft
        return Draft(
            tokens=draft.tokens[:length],
            parents=draft.parents and draft.parents[:length],
            q=None if draft.q is None else draft.q[:length],
            drafter=draft.drafter,
        )
