"""How many tokens to draft, and who drafts them. Decides speed only: no choice made here can change an answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from borrador.draft.protocol import Price
from borrador.engine.costs import DraftCosts
from borrador.engine.drafting import Knowledge, Outlook, Pursuit
from borrador.engine.estimates import Gain
from borrador.engine.proposer import Desk
from borrador.types import Draft, Verdict

Clock = Callable[[], float]
PassCost = Callable[[int], float]

LONGEST_DRAFT = 15
_MARGIN = 1.02  # a draft must promise more than this much speed, or timing noise decides
_TRIAL_TOKENS = 2
_FREE = 0.01  # a token that costs less than this share of a pass is free
_ASSUMED_ACCEPTANCE = 0.75
_LONG_RUN, _LONG_RUN_WEIGHT = 200.0, 10.0  # rounds
_REQUEST, _REQUEST_WEIGHT = 40.0, 6.0  # rounds
_FOLLOW = 0.1
_GOES_ON = 2.5  # an answer is assumed to go on for this many times what is written of it
_CHEAP_READING = 2.5  # plain passes that are risked on reading the context before anything is known of the answer


class Controller:
    """What is known of passes and drafters, kept across requests.

    A round takes the draft with the most expected tokens per second, (1 + sum of survival) / (T(rows) + drafting time),
    where a token's survival is the product of the acceptances along its path, estimated from the drafters' confidence.
    Plain decoding is one of the choices.

    Args:
        pass_s: T(m), seconds of a target pass over m rows.
        prices: of every drafter, in order of preference.
        clock: seconds, to learn what drafting really takes.
    """

    def __init__(self, pass_s: PassCost, prices: Mapping[str, Price], clock: Clock = time.perf_counter) -> None:
        self._pass_s = pass_s
        self._clock = clock
        self._known: dict[str, Knowledge] = {}
        for name, price in prices.items():
            gain = Gain(_assumed_gain(pass_s, price.token_s), _LONG_RUN_WEIGHT, _LONG_RUN)
            self._known[name] = Knowledge(DraftCosts(price), gain)

    def open(self) -> RequestPlan:
        """Start a request, which begins with what is known and adds to it."""
        return RequestPlan(self._pass_s, self._known, self._clock)


@dataclass(slots=True)
class _Round:
    """What was asked for in a round.

    Attributes:
        pending: tokens of the context that its pass evaluates before the draft.
        drafts: what was proposed, used or not: all of it is judged by what the target wrote.
        paid: the drafter whose draft was paid for; None where none was.
        spent_s: what its tokens cost, without the reading of the context.
        trial: it was asked although it does not pay.
    """

    pending: int
    drafts: dict[str, Draft] = field(default_factory=dict)
    paid: str | None = None
    spent_s: float = 0.0
    trial: bool = False


class RequestPlan:
    """Drafting decisions of one request. A drafter that does not pay rests, and is tried as its allowance permits."""

    def __init__(self, pass_s: PassCost, known: Mapping[str, Knowledge], clock: Clock) -> None:
        self._pass_s = pass_s
        self._clock = clock
        self._drafters = {
            name: Outlook(knowledge, Gain(knowledge.gain.value, _REQUEST_WEIGHT, _REQUEST))
            for name, knowledge in known.items()
        }
        self._round = _Round(1)
        self._written = 0
        self._undrafted = 1.0  # share of the tokens that no free drafter proposed

    def gain(self, drafter: str) -> float:
        """The speed expected of drafting with it, as a multiple of plain decoding's."""
        return self._drafters[drafter].gain.value

    def draft(self, desk: Desk, limit: int) -> Draft:
        self._round = _Round(desk.pending)
        remaining = min(limit + 1, _GOES_ON * self._written)
        limit = min(limit, LONGEST_DRAFT)
        copied, speed = self._best_free(desk, limit)
        costly = ((name, outlook) for name, outlook in self._drafters.items() if not self._is_free(outlook))
        for name, outlook in sorted(costly, key=lambda entry: -entry[1].gain.value):
            if self._deserves(outlook, desk.unread(name), speed, remaining):
                return self._pay(desk, name, limit) or copied
        return copied

    def learn(self, draft: Draft, verdict: Verdict, committed: Sequence[int]) -> None:
        written = (*(draft.tokens[index] for index in verdict.path), verdict.next_token)
        for name, proposed in self._round.drafts.items():
            if proposed.q is None and proposed.parents is None:
                self._drafters[name].learn_chain(proposed, written)
            elif name == draft.drafter:
                self._drafters[name].learn_verdict(draft, verdict)
        self._written += len(committed)
        paid = self._round.paid
        copied = bool(draft.tokens) and draft.drafter != paid
        self._undrafted += _FOLLOW * ((not copied) - self._undrafted)
        if paid is not None:
            self._learn_gain(self._drafters[paid], len(draft.tokens), len(written))

    def _learn_gain(self, outlook: Outlook, drafted: int, written: int) -> None:
        passes = (self._round_s(1 + drafted) + self._round.spent_s) / self._round_s(1)
        outlook.learn_gain(written, passes)
        outlook.known.allowance.settle(written - passes, trial=self._round.trial)

    def _round_s(self, rows: int) -> float:
        """Seconds of this round's pass over the last token and rows - 1 of a draft, and what else is pending."""
        return self._pass_s(self._round.pending - 1 + rows)

    def _best_free(self, desk: Desk, limit: int) -> tuple[Draft, float]:
        """The best draft of those that cost nothing, and its expected speed; empty where none is worth its rows."""
        best, best_speed = Draft(), _MARGIN
        for name, outlook in self._drafters.items():
            if self._is_free(outlook):
                draft = self._round.drafts[name] = desk.ask(name, limit)
                count, speed = self._best_length(outlook, draft, 0.0)
                if speed > best_speed:
                    best, best_speed = draft.first(count), speed
        return best, best_speed

    def _deserves(self, outlook: Outlook, unread: int, speed: float, remaining: float) -> bool:
        """Whether to pay this drafter, where `speed` can be had without it."""
        gain, plain_s = outlook.gain.value, self._round_s(1)
        costs, allowance = outlook.known.costs, outlook.known.allowance
        reading = unread * costs.context_token_s / plain_s
        if gain > _MARGIN:
            saved = remaining * self._undrafted * (1.0 - 1.0 / gain)
            return gain > speed and (reading <= _CHEAP_READING or reading < saved)
        trial = (_TRIAL_TOKENS * costs.token_s + self._round_s(1 + _TRIAL_TOKENS)) / plain_s - 1.0
        untried = not outlook.known.tried and reading <= _CHEAP_READING  # costs measured at load may be wrong
        if speed <= _MARGIN and (untried or allowance.covers(reading + trial)):
            self._round.trial = True
            return True
        allowance.rest()
        return False

    def _pay(self, desk: Desk, name: str, limit: int) -> Draft | None:
        """The draft of a drafter whose tokens cost time; None where it has nothing to propose."""
        outlook, unread, trial = self._drafters[name], desk.unread(name), self._round.trial
        pursuit = Pursuit(outlook, self._round_s, self._clock, endless=trial)
        draft = desk.ask(name, min(limit, _TRIAL_TOKENS) if trial else limit, pursuit)
        spent_s = pursuit.finish(len(draft.tokens), unread)
        outlook.known.tried = True
        self._round.paid, self._round.spent_s = name, spent_s
        self._round.drafts[name] = draft
        if not draft.tokens:
            return None
        if trial or draft.q is not None or draft.parents is not None:
            return draft
        return draft.first(self._best_length(outlook, draft, spent_s)[0])

    def _best_length(self, outlook: Outlook, draft: Draft, spent_s: float) -> tuple[int, float]:
        """How many of the draft's tokens to verify for the most speed, and that speed; plain decoding's is 1.

        Not for drawn tokens: which of them are verified must not depend on what was drawn, or answers would no longer
        follow the target's distribution.
        """
        plain_s = self._round_s(1)
        best, length = plain_s / (plain_s + spent_s), 0
        tokens = 1.0
        for count, survival in enumerate(outlook.survival(draft), 1):
            tokens += survival
            speed = tokens * plain_s / (self._round_s(1 + count) + spent_s)
            if speed > best:
                best, length = speed, count
        return length, best

    def _is_free(self, outlook: Outlook) -> bool:
        return outlook.known.costs.token_s <= _FREE * self._pass_s(1)


class FixedLength:
    """Every drafter may propose the same number of tokens each round; the first one that has a draft is heard."""

    def __init__(self, drafters: Sequence[str], draft_tokens: int) -> None:
        self._drafters = tuple(drafters)
        self._draft_tokens = draft_tokens

    def draft(self, desk: Desk, limit: int) -> Draft:
        budget = min(self._draft_tokens, limit)
        drafts = (desk.ask(name, budget) for name in self._drafters if budget > 0)
        return next((draft for draft in drafts if draft.tokens), Draft())

    def learn(self, draft: Draft, verdict: Verdict, committed: Sequence[int]) -> None:
        pass


def _assumed_gain(pass_s: PassCost, token_s: float) -> float:
    """The best gain with drafts of a fixed length if tokens are accepted as often as is assumed of every drafter."""
    tokens = survival = best = 1.0
    for length in range(1, LONGEST_DRAFT + 1):
        survival *= _ASSUMED_ACCEPTANCE
        tokens += survival
        best = max(best, tokens * pass_s(1) / (pass_s(1 + length) + length * token_s))
    return best
