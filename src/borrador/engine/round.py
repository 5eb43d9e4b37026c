"""One round: propose, verify in one pass of the target, accept, commit. Everything else serves these lines.

A round happens completely or not at all: whatever interrupts it, context and cache are as they were before it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from borrador.draft.steps import Steps
from borrador.engine.candidates import Candidates, Load
from borrador.engine.proposer import Proposer
from borrador.grammar.matcher import Matcher
from borrador.models.passes import best_of, evaluate
from borrador.models.target import BestTokens, Rows, Target, Wanted
from borrador.sampling.rules import AcceptanceRule
from borrador.sampling.shaping import History
from borrador.types import NO_DRAFT, Draft, Origin, Reason, RoundRecord, Verdict

_LONGEST_FORCED = 256


class Ending(Protocol):
    """Knows where the answer ends."""

    def room(self) -> int:
        """How many more tokens the answer may have."""
        ...

    def take(self, tokens: Sequence[int]) -> int:
        """Add tokens to the answer up to its end; how many of them belong to it."""
        ...


@dataclass(slots=True)
class RoundState:
    """What a request carries from round to round.

    Attributes:
        context: prompt and answer so far. The target's cache holds a beginning of it; the rest, usually the last token
            alone, is pending and is evaluated by the next round.
        grammar: where the answer has one and is not to be decoded plainly: tokens that it leaves no choice about are
            committed without a pass that would choose them.
        explains: records say why a round drafted what it did.
        wanted: what a pass is to give: what the rule judges by, and what drafters learn from.
    """

    target: Target
    context: list[int]
    proposer: Proposer
    rule: AcceptanceRule[Any]
    ending: Ending
    grammar: Matcher | None = None
    explains: bool = False
    rounds: int = 0
    wanted: Wanted = field(init=False)

    def __post_init__(self) -> None:
        self.wanted = self.rule.wanted.of_at_least(self.proposer.successors)


@dataclass(frozen=True, slots=True)
class Times:
    """When the steps of a round ended, by one clock in seconds."""

    start: float
    drafted: float
    forwarded: float
    end: float


def play_round(state: RoundState) -> RoundRecord:
    """Extend the context by at least one token, or end the answer.

    Raises:
        ModelError: the target's logits are not finite numbers.
    """
    current = Round(state)
    start = time.perf_counter()
    try:
        rows = current.propose()
        drafted = time.perf_counter()
        evidence = evaluate(state.target, rows, current.wanted)
        forwarded = time.perf_counter()
        current.accept(evidence)
    except BaseException:
        current.undo()
        raise
    return current.record(Times(start, drafted, forwarded, time.perf_counter()))


class Round:
    """The steps of a round: propose, (a pass over the rows,) accept, record. Whatever fails, `undo` must follow.

    Where requests share the pass, proposing is two steps: `gather` from each, then `place` what was chosen for it.

    Attributes:
        state: of the request.
        draft: what was proposed.
        pending: how many tokens of the context the pass evaluates before the draft.
        teaches: drafters that learn from passes see this one.
    """

    __slots__ = (
        "_cached",
        "_committed",
        "_length",
        "_reason",
        "_sample_s",
        "_verdict",
        "draft",
        "pending",
        "state",
        "teaches",
    )

    def __init__(self, state: RoundState) -> None:
        self.state = state
        self.draft = NO_DRAFT
        self.teaches = True
        self._cached, self._length = state.target.length, len(state.context)
        self.pending = self._length - self._cached
        self._reason: Reason | None = None
        self._sample_s = 0.0
        self._verdict: Verdict
        self._committed: tuple[int, ...]

    @property
    def wanted(self) -> Wanted:
        """What the pass is to give."""
        return self.state.wanted if self.teaches else self.state.rule.wanted

    @property
    def limit(self) -> int:
        """The most tokens that may be drafted. None in the first round: its pass is a prompt's."""
        return self.state.ending.room() - 1 if self.state.rounds else 0

    def propose(self) -> Rows:
        """Ask for a draft; the rows of the pass that verifies it. Row 0 of the evidence follows the context."""
        proposer = self.state.proposer
        draft = proposer.propose(self.state.context, self.limit, pending=self.pending)
        self.teaches = not proposer.rests
        return self.place(draft)

    def gather(self, load: Load) -> Steps[Candidates]:
        """What is proposed for a pass with this load."""
        return self.state.proposer.gather(self.state.context, self.limit, load, pending=self.pending)

    def place(self, draft: Draft) -> Rows:
        """Take a draft; the rows of the pass that verifies it."""
        self.draft = draft
        if self.state.explains and self.limit > 0:
            self._reason = self.state.proposer.explain(draft)
        return _rows(self.state.context[self._cached :], draft)

    def accept(self, evidence: Any) -> None:
        """Judge the draft by what the pass gave, and commit what belongs to the answer to context and cache.

        Drafters that learn from passes see all rows: those of refused tokens are right behind their own path.
        """
        state, draft, pending = self.state, self.draft, self.pending
        verdict = self._judge(evidence)
        tokens = *(draft.tokens[index] for index in verdict.path), verdict.next_token
        tokens += _forced(state, tokens)
        committed = tokens[: state.ending.take(tokens)]

        kept = verdict.path[: len(committed)]
        self._teach(evidence)
        state.target.commit([*range(pending), *(pending + index for index in kept)])
        state.proposer.observe(draft, verdict, committed)
        state.context.extend(committed)
        state.rounds += 1
        self._verdict, self._committed = verdict, committed

    def _judge(self, evidence: Any) -> Verdict:
        start = time.perf_counter()
        verdict = self.state.rule.accept(evidence, self.draft, self.state.context)
        self._sample_s = time.perf_counter() - start
        return verdict

    def _teach(self, evidence: Any) -> None:
        """Show the pass to drafters that learn from it, before anything shapes what the model gave."""
        proposer = self.state.proposer
        if proposer.successors and self.teaches:
            best = evidence if isinstance(evidence, BestTokens) else best_of(evidence, Wanted(proposer.successors))
            proposer.learn_successors(self.state.context, self.draft, best)

    @property
    def accepted(self) -> int:
        """How many tokens of the draft became part of the answer."""
        return min(len(self._verdict.path), len(self._committed))

    def undo(self) -> None:
        """Bring context and cache back to where they were before the round."""
        self.state.target.rewind(self._cached)
        del self.state.context[self._length :]

    def record(self, times: Times) -> RoundRecord:
        """The round as it happened, once it is accepted."""
        draft, verdict = self.draft, self._verdict
        return RoundRecord(
            number=self.state.rounds,
            draft=draft if draft.q is None else replace(draft, q=None),
            verdict=verdict,
            committed=self._committed,
            origins=_origins(verdict, len(self._committed)),
            draft_s=times.drafted - times.start,
            forward_s=times.forwarded - times.drafted,
            total_s=times.end - times.start,
            sample_s=self._sample_s,
            pending=self.pending,
            reason=self._reason,
        )


def _rows(pending: Sequence[int], draft: Draft) -> Rows:
    """Pending tokens as a chain, the draft below the last of them; what the rule needs is of the rows from there on."""
    root = len(pending) - 1
    if draft.parents is None:
        return Rows.chain((*pending, *draft.tokens), logits_from=root)
    tokens = np.asarray((*pending, *draft.tokens), np.int32)
    below = [root + 1 + parent for parent in draft.parents]
    return Rows(tokens, np.asarray((*range(-1, root), *below), np.int32), root)


def _forced(state: RoundState, tokens: tuple[int, ...]) -> tuple[int, ...]:
    """The tokens that must follow these. Like every last token, they are evaluated by the next round."""
    if state.grammar is None:
        return ()
    limit = min(state.ending.room() - len(tokens), _LONGEST_FORCED)
    return state.grammar.forced(History(state.context, tokens), limit)


def _origins(verdict: Verdict, count: int) -> tuple[Origin, ...]:
    """Origins of the first `count` tokens; after the target's own token come those of the grammar."""
    own = Origin.BONUS if verdict.bonus else Origin.TARGET
    origins = (*(Origin.DRAFT for _ in verdict.path), own)
    return (*origins, *(Origin.GRAMMAR for _ in range(count - len(origins))))[:count]
