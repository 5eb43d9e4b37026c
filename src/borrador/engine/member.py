"""A request among those that are decoded together."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from borrador.draft.steps import Steps, WorkClock
from borrador.engine.candidates import Candidates, Load
from borrador.engine.line import Request as Request
from borrador.engine.line import Ticket
from borrador.engine.pace import Pace
from borrador.engine.round import Round, Times
from borrador.engine.session import Session
from borrador.errors import MemoryLimitError
from borrador.models.target import Rows, Target, Wanted
from borrador.types import Draft, GenerationEvent

_FOLLOW = 0.1
_WORTH_WAITING = 4  # tokens that another request is about to evaluate


@dataclass(slots=True, eq=False)
class Member:
    """A request while it is written. A step plays its round, reads a piece of its prompt, or lets it wait.

    Attributes:
        ticket: with which it waited for its turn.
        session: writes it.
        elders: requests of its namespace that were there before it, with how many tokens of its context they share.
        is_reading: its context is not evaluated yet.
        round: of this step; None where it plays none.
        rows: that it has in this step's pass until they are committed; None where it has none.
        speed: tokens that it writes in a step, on average of the last ones.
        token_s: seconds that an accepted token saves in this step.
        asked_s: seconds that asking its drafters took, beside what those took that were paid for; None where they were
            not asked.
        paid_s: what the tokens took that were paid for.
        error: why it fails in this step.
    """

    ticket: Ticket
    session: Session
    elders: Sequence[tuple[Member, int]] = ()
    is_reading: bool = True
    pace: Pace = field(default_factory=Pace)
    speed: float = 1.0
    token_s: float = 0.0
    round: Round | None = None
    rows: Rows | None = None
    asked_s: float | None = None
    paid_s: float = 0.0
    error: Exception | None = None
    is_gone: bool = False

    @property
    def key(self) -> int:
        return self.ticket.key

    @property
    def target(self) -> Target:
        return self.session.state.target

    @property
    def wanted(self) -> Wanted:
        """What it wants of the pass: nothing that others must pay for, where it is a piece of its prompt."""
        return self.round.wanted if self.round is not None else Wanted(best=1)

    def waits(self) -> bool:
        """Whether an elder is about to evaluate more of the prompt; if not, take over what the elders hold of it."""
        self.elders = [(elder, shared) for elder, shared in self.elders if not elder.is_gone]
        held, source = self.target.length, self
        for elder, shared in self.elders:
            if min(shared, elder.target.length) > held:
                held, source = min(shared, elder.target.length), elder
        if any(elder.is_reading and shared - held >= _WORTH_WAITING for elder, shared in self.elders):
            return True
        if source is not self:
            with contextlib.suppress(MemoryLimitError):  # then it evaluates them itself
                self.session.adopt(source.target, held)
        return False

    def play(self) -> int:
        """Begin a round; the rows that it has whatever is drafted."""
        self.round = Round(self.session.state)
        return self.round.pending

    def read(self, most: int) -> int:
        """Bring the prompt on by at most so many rows, the last of which begin the first round; how many they are."""
        length, unread = self.target.length, self.session.unread
        if unread <= most:
            return self.play()
        if most > 0:
            self.rows = Rows.chain(self.session.state.context[length : length + most], logits_from=most)
        return max(most, 0)

    @property
    def steps_left(self) -> float:
        """Steps that its answer needs yet, if it goes on to its limit as fast as it went."""
        return self.session.state.ending.room() / self.speed

    def asks(self, *, pays: bool, always: bool) -> bool:
        """Whether its drafters are asked in this step: where the length of drafts is fixed, always.

        Args:
            pays: a draft can save more than its rows take.
            always: then in every step; else as often as it has paid.
        """
        proposer = self.session.state.proposer
        if self.round is None or not proposer.drafts or self.round.limit < 1:
            return False
        self.round.teaches = proposer.is_fixed or (pays and (always or self.pace.asks()))
        return self.round.teaches

    @property
    def clock(self) -> WorkClock:
        return self.session.state.proposer.clock

    def gather(self, load: Load) -> Steps[Candidates]:
        """What its drafters propose, for a pass with this load, whose `value` is that of this request's tokens."""
        start, found = self.clock(), Candidates(whole=Draft())
        if self.round is not None:
            try:
                found = yield from self.round.gather(load)
            except Exception as error:  # noqa: BLE001 - a request fails alone, whatever it is
                self.fail(error)
        self.paid_s = found.spent_s
        self.asked_s = max(self.clock() - start - found.spent_s - found.reading_s, 0.0)
        if found.tokens:
            found.survival = [load.value * survival for survival in found.survival]
        return found

    def place(self, draft: Draft) -> None:
        """Take the draft that was chosen for it."""
        if self.round is not None:
            self.rows = self.round.place(draft)

    def accept(self, evidence: Any) -> None:
        """Commit what the pass brought."""
        if self.round is not None:
            self._attempt(partial(self.round.accept, evidence))
            self.is_reading, self.elders = False, ()
        elif self.rows is not None:
            self._attempt(partial(self.target.commit, range(len(self.rows.tokens))))
        self.rows = None

    def settle(self, row_s: float) -> float:
        """Learn whether asking the drafters was worth it, where a row of a draft took so many seconds.

        Returns:
            Seconds that this saved, less all that it took.
        """
        if self.round is None or self.asked_s is None:
            return 0.0
        saved_s = self.round.accepted * self.token_s - len(self.round.draft.tokens) * row_s
        self.pace.settle(saved_s, self.asked_s)
        return saved_s - self.asked_s - self.paid_s

    def conclude(self, times: Times, now: float) -> Sequence[GenerationEvent]:
        """End the step, and the answer where its deadline has passed; the events that came of it."""
        events: Sequence[GenerationEvent] = self._attempt(partial(self._events, times)) or ()
        if now >= self.ticket.deadline and self.error is None and not self.session.is_finished:
            return (*events, self.session.expire())
        return events

    def _events(self, times: Times) -> Sequence[GenerationEvent]:
        played, self.round, self.asked_s = self.round, None, None
        if played is not None:
            self.speed += _FOLLOW * (1 + played.accepted - self.speed)
            return tuple(self.session.take(played.record(times)))
        self.session.add_prefill(times.end - times.start)
        return ()

    def fail(self, error: Exception) -> None:
        """End with this step, which brought an error."""
        self.error = error
        self.undo()

    def undo(self) -> None:
        """Bring context and cache back to where they were before the step, where its rows are not committed."""
        if self.rows is not None:
            if self.round is not None:
                self.round.undo()
            else:
                self.target.rewind(self.target.length)
        self.round = self.rows = None

    def _attempt(self, work: Callable[[], Any]) -> Any:
        """What goes wrong is noted, and is nobody else's trouble."""
        try:
            return work()
        except Exception as error:  # noqa: BLE001 - a request fails alone, whatever it is
            self.fail(error)
            return None
