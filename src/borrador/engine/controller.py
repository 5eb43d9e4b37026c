"""How many tokens to draft, and who drafts them. Decides speed only: no choice made here can change an answer."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from borrador.draft.protocol import Price
from borrador.draft.steps import Clock, Steps, WorkClock, alone
from borrador.engine.candidates import (
    ALONE,
    LONGEST_DRAFT,
    NOTHING,
    Candidates,
    Load,
    PassCost,
    Proposal,
    best_rows,
    choose,
)
from borrador.engine.costs import DraftCosts, behind
from borrador.engine.drafting import LONG_RUN, LONG_RUN_WEIGHT, Knowledge, Outlook, Pass, Pursuit
from borrador.engine.estimates import Jury, Yield
from borrador.engine.proposer import Desk
from borrador.types import Consideration, Draft, Reason, Verdict

_MARGIN = 1.02  # a draft must promise more than this much speed, or timing noise decides
_TRIAL_TOKENS = 2
_FREE = 0.01  # a token that costs less than this share of a pass is free
_LEARNING = 4.0  # judging a draft, learning from it, and caches that hold less of the weights take three times as long
_FREE_CALL = 0.25  # as long as a proposal costs less than this share
_ASSUMED_ACCEPTANCE = 0.75
_REQUEST, _REQUEST_WEIGHT = 30.0, 4.0  # rounds
_FOLLOW = 0.1
_GOES_ON = 2.5  # an answer is assumed to go on for this many times what is written of it
_COMPANY_MARGIN, _COMPANY_SAVING = 1.3, 2.0  # where all wait for what one's drafter reads, and others for their drafts
_CHEAP_READING = 1.0  # plain passes that are risked on reading the context before anything is known of the answer


class Controller:
    """What is known of passes and drafters, kept across requests.

    A round takes the rows with the most expected tokens per second, (1 + sum of survival) / (T(rows) + drafting time),
    where a token's survival is the product of the acceptances along its path, estimated from the drafters' confidence.
    Tokens of drafters that cost nothing are put together in one tree; a drafter whose tokens cost time is asked where
    it is expected to bring more than they do. No row at all is one of the choices.

    Args:
        pass_s: T(m), seconds of a target pass over m rows.
        prices: of every drafter, in order of preference; or what is known of it from earlier.
        clock: seconds, to learn what drafting really takes.
        jury: what is known from earlier of drafts put together.
    """

    def __init__(
        self,
        pass_s: PassCost,
        prices: Mapping[str, Price | Knowledge],
        clock: Clock = time.perf_counter,
        jury: Jury | None = None,
    ) -> None:
        self._pass_s = pass_s
        self._clock = clock
        self.jury = jury or Jury()
        self._known = {
            name: known if isinstance(known, Knowledge) else _expect(pass_s, known) for name, known in prices.items()
        }

    def as_json(self) -> dict[str, Any]:
        """What was learnt of each drafter, as `Knowledge.from_json` reads it."""
        return {name: known.as_json() for name, known in self._known.items()}

    def open(self) -> RequestPlan:
        """Start a request, which begins with what is known and adds to it."""
        return RequestPlan(self._pass_s, self._known, self.jury, self._clock)


@dataclass(slots=True)
class _Round:
    """What was asked for in a round.

    Attributes:
        pass_s: T(m), without what contexts cost.
        load: of the pass that verifies.
        drafts: what was proposed, used or not: all of it is judged by what the target wrote.
        free_speed: the speed expected without a draft that costs time.
        paid: the drafter whose draft was paid for; None where none was.
        spent_s: what its tokens cost, without the reading of the context.
        company: how many requests shared that.
        trial: it was asked although it is not expected to pay.
        rested: why others were not asked.
        asked_s: seconds that asking the drafters took whose tokens cost nothing.
        tree: what there was to choose from.
    """

    pass_s: PassCost
    load: Load = ALONE
    drafts: dict[str, Draft] = field(default_factory=dict)
    free_speed: float = 1.0
    paid: str | None = None
    spent_s: float = 0.0
    company: float = 1.0
    trial: bool = False
    rested: dict[str, str] = field(default_factory=dict)
    asked_s: dict[str, float] = field(default_factory=dict)
    tree: Candidates = field(default_factory=lambda: NOTHING)
    _shared: Pass | None = None

    @property
    def shared(self) -> Pass:
        """The pass that verifies; most rounds of a request whose drafters rest need not know."""
        if self._shared is None:
            self._shared = Pass(behind(self.pass_s, self.load), self.load)
        return self._shared


class RequestPlan:
    """Drafting decisions of one request. A drafter that does not pay rests, and is tried as its allowance permits."""

    def __init__(self, pass_s: PassCost, known: Mapping[str, Knowledge], jury: Jury, clock: Clock) -> None:
        self._pass_s = pass_s
        self._jury = jury
        self.clock = WorkClock(clock)
        self._drafters = {
            name: Outlook(knowledge, knowledge.average.copy(_REQUEST_WEIGHT, _REQUEST))
            for name, knowledge in known.items()
        }
        self._round = _Round(pass_s)
        self._written = 0
        self._undrafted = 1.0  # share of the tokens that no free drafter proposed

    def gain(self, drafter: str) -> float:
        """The speed expected of drafting with it for one request alone, as a multiple of plain decoding's."""
        return Pass(self._pass_s).expected(self._drafters[drafter].average)

    def draft(self, desk: Desk, limit: int) -> Draft:
        """The draft for a request that has the pass to itself."""
        load = desk.load
        return choose([alone(self.gather(desk, limit, load))], behind(self._pass_s, load), load)[0]

    def rests(self, load: Load) -> bool:
        """Begin a round without asking anybody, where all drafters rest whose tokens cost nothing, and there are no
        others; False, and nothing has happened, where there are."""
        outlooks = self._drafters.values()
        if not all(outlook.pace.is_resting and outlook.known.costs.token_s == 0.0 for outlook in outlooks):
            return False
        for outlook in outlooks:
            outlook.pace.asks()
        self._round = _Round(self._pass_s, load)
        return True

    def gather(self, desk: Desk, limit: int, load: Load) -> Steps[Candidates]:
        """What is proposed to this request, for a pass with this load before any draft.

        Args:
            desk: its draft sessions.
            limit: the most tokens that may follow one another.
            load: of the pass.
        """
        self._round = _Round(self._pass_s, load)
        remaining = min(limit + 1, _GOES_ON * self._written)
        limit = min(limit, LONGEST_DRAFT)
        if limit < 1:
            return NOTHING
        costly = [name for name, outlook in self._drafters.items() if not self._is_free(outlook)]
        asked = [name for name in self._drafters if name not in costly and self._drafters[name].pace.asks()]
        if not asked and not costly:
            return NOTHING
        free: list[Proposal] = []
        for name in asked:
            free += ((yield from self._ask(desk, name, limit)),)
        candidates = self._round.tree = Candidates.merge(free, judge=self._jury)
        if costly:
            self._round.free_speed = max(self._speed(candidates), 1.0)
            costly.sort(key=lambda name: -self._expected(self._drafters[name]))
        for name in costly:
            if self._deserves(name, desk.unread(name), remaining):
                return (yield from self._pay(desk, name, limit, free))
        return candidates

    def explain(self, draft: Draft) -> Reason:
        shared, spent_s = self._round.shared, self._round.spent_s
        considered = tuple(self._consider(name, outlook) for name, outlook in self._drafters.items())
        proposals = [self._drafters[name].proposal(proposed) for name, proposed in self._round.drafts.items()]
        expected = Candidates.merge(proposals, judge=self._jury).expected(draft)
        round_s = shared.seconds(len(draft.tokens)) + spent_s
        speed = shared.speed(expected, len(draft.tokens), spent_s)
        return Reason(shared.plain_s, round_s, expected, speed, considered)

    def _consider(self, name: str, outlook: Outlook) -> Consideration:
        draft = self._round.drafts.get(name, Draft())
        expected = sum(Candidates.merge([outlook.proposal(draft)]).survival)
        if self._is_free(outlook):
            return Consideration(name, len(draft.tokens), expected, None, "" if name in self._round.drafts else "rests")
        note = (
            "trial" if self._round.trial else "pays" if name == self._round.paid else self._round.rested.get(name, "")
        )
        return Consideration(name, len(draft.tokens), expected, self._expected(outlook), note)

    def learn(self, draft: Draft, verdict: Verdict, committed: Sequence[int]) -> None:
        self._written += len(committed)
        if self._round.drafts:
            self._learn(draft, verdict)
        else:
            self._undrafted += _FOLLOW * (1.0 - self._undrafted)

    def _learn(self, draft: Draft, verdict: Verdict) -> None:
        written = (*(draft.tokens[index] for index in verdict.path), verdict.next_token)
        foreseen: dict[str, int] = {}
        for name, proposed in self._round.drafts.items():
            if proposed.q is None:
                foreseen[name] = self._drafters[name].learn_written(proposed, written)
            elif name == draft.drafter:
                self._drafters[name].learn_verdict(draft, verdict)
        self._settle_asking(foreseen, len(draft.tokens))
        tree = self._round.tree
        for index, accepted in tree.fates(written):
            self._jury.learn(tree.hopes[index], tree.votes[index], accepted)
        paid = self._round.paid
        copied = bool(draft.tokens) and paid is None
        self._undrafted += _FOLLOW * ((not copied) - self._undrafted)
        if paid is not None:
            self._learn_paid(self._drafters[paid], len(written) - 1, len(draft.tokens))

    def _settle_asking(self, foreseen: Mapping[str, int], rows: int) -> None:
        """Let drafters whose tokens cost nothing rest where asking them takes more than it saves.

        A token is to the credit of the first drafter that foresaw it, verified or not: what a later one adds is what
        counts for it. Rows are to the debit of all that were asked.
        """
        shared, asked_s = self._round.shared, self._round.asked_s
        row_s = (shared.seconds(rows) - shared.plain_s) / max(len(foreseen), 1)
        covered = 0
        for name, seconds in asked_s.items():
            added = max(foreseen.get(name, 0) - covered, 0)
            covered += added
            self._drafters[name].pace.settle(added * shared.plain_s - row_s, _LEARNING * seconds)

    def _learn_paid(self, outlook: Outlook, accepted: int, rows: int) -> None:
        spent_s = self._round.spent_s
        outlook.learn_round(accepted, rows, spent_s * self._round.company)
        gained = self._round.shared.gained(accepted, rows, spent_s, self._round.free_speed)
        outlook.known.allowance.settle(gained, trial=self._round.trial)

    def _ask(self, desk: Desk, name: str, limit: int) -> Steps[Proposal]:
        """The proposal of a drafter whose tokens cost nothing."""
        outlook, start = self._drafters[name], self.clock()
        draft = self._round.drafts[name] = yield from desk.ask(name, limit)
        seconds = self._round.asked_s[name] = self.clock() - start
        costs = outlook.known.costs
        costs.observe_call(seconds, len(draft.tokens), _FREE_CALL * self._round.shared.plain_s)
        if costs.token_s > _FREE * self._round.shared.plain_s:  # it costs time after all
            outlook.known.average = _expect(self._pass_s, Price(costs.token_s)).average
            outlook.average = outlook.known.average.copy(_REQUEST_WEIGHT, _REQUEST)
        outlook.known.tried = True
        return outlook.proposal(draft) if draft.q is None else Proposal(Draft(), ())

    def _speed(self, candidates: Candidates) -> float:
        """The speed expected of the best choice among these, as a multiple of plain decoding's."""
        shared = self._round.shared
        worth = [shared.load.value * survival for survival in candidates.survival]
        (chosen,) = best_rows([worth], shared.pass_s, shared.load, candidates.spent_s)
        return shared.speed(sum(candidates.survival[index] for index in chosen), len(chosen), candidates.spent_s)

    def _expected(self, outlook: Outlook) -> float:
        return self._round.shared.expected(outlook.average, outlook.known.company(self._round.load))

    def _deserves(self, name: str, unread: int, remaining: float) -> bool:
        """Whether to pay this drafter, beside what can be had without it."""
        outlook, shared = self._drafters[name], self._round.shared
        gain, costs = self._expected(outlook), outlook.known.costs
        reading = unread * costs.context_token_s * shared.rate
        margin, saving = (_COMPANY_MARGIN, _COMPANY_SAVING) if shared.load.requests > 1 else (_MARGIN, 1.0)
        if gain <= max(self._round.free_speed, margin):
            return self._may_try(name, reading)
        saved = shared.load.requests * remaining * self._undrafted * (1.0 - 1.0 / gain)
        if reading <= _CHEAP_READING or saving * reading < saved:
            return True
        self._round.rested[name] = f"reading {unread} tokens may cost more than it saves"
        return False

    def _may_try(self, name: str, reading: float) -> bool:
        """Whether to pay a drafter that is not expected to pay, to see if that has changed."""
        outlook, shared, speed = self._drafters[name], self._round.shared, self._round.free_speed
        costs, allowance, by_itself = outlook.known.costs, outlook.known.allowance, shared.load.requests == 1
        company = outlook.known.company(shared.load)
        trial_s = _TRIAL_TOKENS * costs.token_s / company + shared.seconds(_TRIAL_TOKENS)
        loss = speed * trial_s * shared.rate - shared.load.requests
        cheap = reading <= _CHEAP_READING
        untried = not outlook.known.tried and cheap  # costs measured at load may be wrong
        if (untried and speed <= _MARGIN) or ((by_itself or cheap) and allowance.covers(reading + loss)):
            self._round.trial = True
            return True
        allowance.rest()
        self._round.rested[name] = f"{speed:.2f}x without it" if speed > _MARGIN else "rests"
        return False

    def _pay(self, desk: Desk, name: str, limit: int, free: Sequence[Proposal]) -> Steps[Candidates]:
        """What there is to verify once a drafter has spent time on it."""
        outlook, unread, trial = self._drafters[name], desk.unread(name), self._round.trial
        brief = trial and self._expected(outlook) <= _MARGIN
        charged, unshared = self.clock(), self.clock.unshared()
        pursuit = Pursuit(outlook, self._round.shared, self._round.free_speed, self.clock.unshared, endless=brief)
        draft = yield from desk.ask(name, min(limit, _TRIAL_TOKENS) if brief else limit, pursuit)
        unshared, charged = self.clock.unshared() - unshared, self.clock() - charged
        company = self._round.company = unshared / charged if charged > 0.0 else 1.0
        outlook.known.learn_company(company, self._round.load)
        spent_s = pursuit.finish(draft.depth, unread) / company
        outlook.known.tried = True
        self._round.paid, self._round.spent_s = name, spent_s
        self._round.drafts[name] = draft
        if draft.tokens and (brief or draft.q is not None):
            # Which drawn tokens are verified must not depend on what was drawn, or answers would no longer follow the
            # target's distribution.
            candidates = Candidates(whole=draft, spent_s=spent_s)
        else:
            proposals = [outlook.proposal(draft), *free]
            candidates = self._round.tree = Candidates.merge(proposals, spent_s, self._jury)
        candidates.reading_s = max(charged - spent_s, 0.0) if unread else 0.0
        return candidates

    def _is_free(self, outlook: Outlook) -> bool:
        return outlook.known.costs.token_s <= _FREE * self._pass_s(1)


def _expect(pass_s: PassCost, price: Price) -> Knowledge:
    """Drafts of the best fixed length, if tokens are accepted as often as is assumed of every drafter."""
    shared = Pass(pass_s)
    accepted, survival = [0.0], 1.0
    for _ in range(LONGEST_DRAFT):
        survival *= _ASSUMED_ACCEPTANCE
        accepted.append(accepted[-1] + survival)
    lengths = range(1, LONGEST_DRAFT + 1)
    best = max(lengths, key=lambda length: shared.speed(accepted[length], length, length * price.token_s))
    average = Yield(accepted[best], best, best * price.token_s, LONG_RUN_WEIGHT, LONG_RUN)
    return Knowledge(DraftCosts(price), average)
