"""A request's drafters behind one face; a plan decides who of them drafts how much."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Protocol

from borrador.draft.protocol import (
    Drafter,
    DraftSession,
    GoOn,
    Hinting,
    HintTaker,
    SeparatingDrafter,
    SuccessorLearner,
    always,
)
from borrador.draft.steps import Steps, WorkClock, alone
from borrador.draft.trim import end_draft, trim
from borrador.engine.candidates import NOTHING, Candidates, Load, PassCost, choose
from borrador.engine.costs import behind
from borrador.grammar.matcher import Matcher
from borrador.models.target import BestTokens
from borrador.sampling.shaping import Shaper
from borrador.types import NO_DRAFT, Draft, Reason, Verdict

_MARGIN = 1.06  # speed that a draft must promise: judging it and learning from it take time too


@dataclass(frozen=True, slots=True)
class Desk:
    """The draft sessions of a request in one round.

    What a drafter may have got wrong is cut off here: too many tokens, and tokens that do not exist, that the grammar
    refuses or that come after the answer's end.
    """

    sessions: Mapping[str, DraftSession]
    context: Sequence[int]
    vocabulary_size: int
    grammar: Matcher | None = None
    pending: int = 1  # tokens of the context that the pass evaluates before the draft
    end_ids: Collection[int] = ()

    @property
    def load(self) -> Load:
        """Of a pass that this request has to itself."""
        return Load(self.pending, 1, len(self.context) - self.pending)

    def unread(self, drafter: str) -> int:
        """Tokens of the context that this drafter must read before it can propose."""
        return self.sessions[drafter].unread(self.context)

    def ask(self, drafter: str, budget: int, go_on: GoOn = always) -> Steps[Draft]:
        """A draft of at most `budget` tokens."""
        session = self.sessions[drafter]
        steps = getattr(session, "steps", None)  # of a `SteppedSession`; asking for the protocol takes long
        if steps is not None:
            draft: Draft = yield from steps(self.context, budget, go_on)
        else:
            draft = session.propose(self.context, budget, go_on)
        unknown = (index for index, token in enumerate(draft.tokens) if not 0 <= token < self.vocabulary_size)
        draft = end_draft(draft.first(min(next(unknown, len(draft.tokens)), budget)), self.end_ids)
        return draft if self.grammar is None else trim(draft, self.context, self.grammar)


class DraftPlan(Protocol):
    """Decides who drafts how much; see `borrador.engine.controller`.

    Attributes:
        clock: by which the request's drafting is timed.
    """

    @property
    def clock(self) -> WorkClock: ...

    def rests(self, load: Load, /) -> bool:
        """Let a round without a draft begin where no drafter's turn has come; False where `gather` must be asked."""
        ...

    def gather(self, desk: Desk, limit: int, load: Load, /) -> Steps[Candidates]:
        """What is proposed to a request.

        Args:
            desk: its draft sessions.
            limit: the most tokens that may follow one another.
            load: of the pass that will verify what `choose` takes of it.
        """
        ...

    def explain(self, draft: Draft, /) -> Reason | None:
        """Why the last `gather` led to this draft; None where nothing was weighed."""
        ...

    def learn(self, draft: Draft, verdict: Verdict, committed: Sequence[int]) -> None:
        """Learn how the round ended that began with the last `gather`."""
        ...


class Proposer:
    """The draft sessions of one request.

    Args:
        sessions: by drafter name.
        plan: decides who drafts how much.
        vocabulary_size: of the target; a draft ends before the first token that lies outside.
        grammar: of the answer, where it has one.
        pass_s: T(m), seconds of a target pass over m rows; None where the plan's drafts are verified whole.
        end_ids: tokens that end the answer.

    Attributes:
        successors: how many likely tokens of every row of a pass the drafters learn from; 0 where none does.
        rests: no drafter's turn has come in the round that `propose` began last.
    """

    def __init__(
        self,
        sessions: Mapping[str, DraftSession],
        plan: DraftPlan,
        vocabulary_size: int,
        grammar: Matcher | None = None,
        pass_s: PassCost | None = None,
        end_ids: Collection[int] = (),
    ) -> None:
        self._pass_s = pass_s
        self._sessions = sessions
        self._plan = plan
        self._vocabulary_size = vocabulary_size
        self._grammar = grammar
        self._end_ids = end_ids
        hints = [session.hint for session in sessions.values() if isinstance(session, Hinting)]
        for session in sessions.values():
            if isinstance(session, HintTaker):
                session.use_hints(hints)
        self._gathered = self.rests = False
        self._learners = [session for session in sessions.values() if isinstance(session, SuccessorLearner)]
        self.successors = max((learner.successors for learner in self._learners), default=0)

    @property
    def is_fixed(self) -> bool:
        """Its drafts are verified whole, whatever that costs."""
        return self._pass_s is None

    @property
    def drafts(self) -> bool:
        """There is a drafter."""
        return bool(self._sessions)

    def propose(self, context: Sequence[int], limit: int, *, pending: int = 1) -> Draft:
        """A draft of at most `limit` tokens, or an empty one, for a pass that evaluates `pending` tokens before it."""
        load = Load(pending, 1, len(context) - pending)
        # Most rounds of an answer that drafts do not help end here: what they do beside the pass is all that they lose.
        self.rests = limit > 0 and (not self._sessions or self._plan.rests(load))
        if self.rests or limit < 1:
            self._gathered = self.rests
            return NO_DRAFT
        candidates = alone(self.gather(context, limit, load, pending=pending))
        if candidates is NOTHING:
            return NO_DRAFT
        pass_s = behind(self._pass_s, load) if self._pass_s is not None else None
        (draft,) = choose([candidates], pass_s, load, _MARGIN)
        return draft

    @property
    def clock(self) -> WorkClock:
        """By which drafting is timed."""
        return self._plan.clock

    def gather(self, context: Sequence[int], limit: int, load: Load, *, pending: int = 1) -> Steps[Candidates]:
        """What is proposed for a pass that others may share, with this load before any draft."""
        if limit < 1:
            return NOTHING
        desk = Desk(self._sessions, context, self._vocabulary_size, self._grammar, pending, self._end_ids)
        self._gathered = True
        return (yield from self._plan.gather(desk, limit, load))

    def explain(self, draft: Draft) -> Reason | None:
        """Why the last round chose this draft; None where nothing was weighed."""
        return self._plan.explain(draft)

    def learn_successors(self, context: Sequence[int], draft: Draft, best: BestTokens) -> None:
        """Let those drafters learn from a pass that do; arguments as for `SuccessorLearner`."""
        for learner in self._learners:
            learner.learn_successors(context, draft, best)

    def observe(self, draft: Draft, verdict: Verdict, committed: Sequence[int]) -> None:
        """Let everyone learn how the round ended; the plan, where it was asked for a draft."""
        if self._gathered:
            self._plan.learn(draft, verdict, committed)
        self._gathered = False
        for session in self._sessions.values():
            session.observe(committed)

    def close(self) -> None:
        for session in self._sessions.values():
            session.close()


def open_sessions(drafters: Mapping[str, Drafter], shaper: Shaper, namespace: str = "") -> dict[str, DraftSession]:
    """A session of every drafter, by its name, for a request of a namespace; none stays open where one cannot be
    opened."""
    with ExitStack() as opened:
        sessions: dict[str, DraftSession] = {}
        for name, drafter in drafters.items():
            if isinstance(drafter, SeparatingDrafter):
                sessions[name] = drafter.open_in(namespace, shaper)
            else:
                sessions[name] = drafter.open(shaper)
            opened.callback(sessions[name].close)
        opened.pop_all()
        return sessions
