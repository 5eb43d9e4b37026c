"""Drafts of the same length in every round, whatever they cost."""

from __future__ import annotations

from collections.abc import Sequence

from borrador.draft.steps import Steps, WorkClock, alone
from borrador.engine.candidates import Candidates, Load
from borrador.engine.drafting import promised_tokens
from borrador.engine.proposer import Desk
from borrador.types import Draft, Verdict


class FixedLength:
    """Drafters may propose the same number of tokens each round.

    The first one is heard whose own confidence promises at least half of its tokens; if none does, the most hopeful.
    """

    def __init__(self, drafters: Sequence[str], draft_tokens: int) -> None:
        self.clock = WorkClock()
        self._drafters = tuple(drafters)
        self._draft_tokens = draft_tokens

    def draft(self, desk: Desk, limit: int) -> Draft:
        """The draft for a request that has the pass to itself."""
        return alone(self._draft(desk, limit))

    def rests(self, _load: Load) -> bool:
        """Nothing is ever proposed."""
        return not (self._draft_tokens and self._drafters)

    def gather(self, desk: Desk, limit: int, _load: Load) -> Steps[Candidates]:
        """What is proposed to this request, to be verified whole."""
        return Candidates(whole=(yield from self._draft(desk, limit)))

    def explain(self, _draft: Draft) -> None:
        return None

    def learn(self, draft: Draft, verdict: Verdict, committed: Sequence[int]) -> None:
        pass

    def _draft(self, desk: Desk, limit: int) -> Steps[Draft]:
        budget = min(self._draft_tokens, limit)
        best, most = Draft(), 0.0
        for name in self._drafters if budget > 0 else ():
            draft = yield from desk.ask(name, budget)
            promised = promised_tokens(draft)
            # Whether drawn tokens are verified must not depend on what was drawn.
            if draft.tokens and (draft.q is not None or promised >= len(draft.tokens) / 2):
                return draft
            if promised > most:
                best, most = draft, promised
        return best
