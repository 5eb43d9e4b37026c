"""One drafter in one request: what is expected of it, and how long it is worth going on with a draft."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from borrador.draft.protocol import CERTAIN, Price
from borrador.engine.candidates import ALONE, Load, PassCost, Proposal
from borrador.engine.costs import DraftCosts
from borrador.engine.estimates import UNKNOWN_CONFIDENCE, Allowance, Calibration, Trust, Yield
from borrador.engine.pace import Pace
from borrador.types import Draft, Verdict

_TYPICAL_FIRST = 0.8
_FOLLOW_TYPICAL = 0.02
_FOLLOW_COMPANY = 0.05
_IN_STEP = 4  # unread tokens that a step reads at the price of one token
_MANY_UNREAD = 16
LONG_RUN, LONG_RUN_WEIGHT = 200.0, 10.0  # rounds that averages remember, and that assumptions count for
_ETERNITY_S, _MANY = 1e6, 1e3


class Pass:
    """The pass that a round shares with others.

    Args:
        pass_s: T(m), seconds of a pass over m rows.
        load: what is in it before any draft.

    Attributes:
        plain_s: seconds of the pass without drafts.
        rate: tokens per second of plain decoding.
    """

    __slots__ = ("load", "pass_s", "plain_s", "rate")

    def __init__(self, pass_s: PassCost, load: Load = ALONE) -> None:
        self.pass_s = pass_s
        self.load = load
        self.plain_s = pass_s(load.rows)
        self.rate = load.requests / self.plain_s

    def seconds(self, drafted: float) -> float:
        """Seconds of the pass with so many drafted rows."""
        return self.pass_s(self.load.rows + drafted)

    def speed(self, accepted: float, rows: float, spent_s: float) -> float:
        """Speed of a round that accepts so many of the rows drafted, as a multiple of plain decoding's."""
        written = self.load.requests + self.load.value * accepted
        return written / ((self.seconds(rows) + spent_s) * self.rate)

    def gained(self, accepted: float, rows: float, spent_s: float, speed: float = 1.0) -> float:
        """Tokens more than rounds of that speed write in the same time."""
        written = self.load.requests + self.load.value * accepted
        return written - speed * (self.seconds(rows) + spent_s) * self.rate

    def expected(self, average: Yield, company: float = 1.0) -> float:
        """The speed of rounds that bring and take this on average, where so many share what drafting takes."""
        return self.speed(average.accepted, average.rows, average.spent_s / company)


@dataclass(slots=True)
class Knowledge:
    """What is known of a drafter, kept across requests.

    Attributes:
        costs: what its work costs.
        average: what its rounds have brought.
        calibration: what its confidence is worth.
        allowance: for trying it while it does not pay.
        typical: the acceptance of an average token.
        tried: it has drafted at least once.
        joining: of the requests that share a pass, the part that drafts with it at the same time.
    """

    costs: DraftCosts
    average: Yield
    calibration: Calibration = field(default_factory=Calibration)
    allowance: Allowance = field(default_factory=Allowance)
    typical: float = _TYPICAL_FIRST
    tried: bool = False
    joining: float = 1.0

    def company(self, load: Load) -> float:
        """How many requests of this load are expected to share its work."""
        return max(self.joining * load.requests, 1.0)

    def learn_company(self, company: float, load: Load) -> None:
        """Learn how many did."""
        if load.requests > 1:
            self.joining += _FOLLOW_COMPANY * (company / load.requests - self.joining)

    def as_json(self) -> dict[str, Any]:
        return {
            "seconds": [self.costs.token_s, self.costs.context_token_s],
            "average": [self.average.accepted, self.average.rows, self.average.spent_s],
            "calibration": self.calibration.as_json(),
            "typical": self.typical,
        }

    @classmethod
    def from_json(cls, stored: Any) -> Knowledge:
        """What `as_json` gave. Raises ValueError, KeyError or TypeError for anything else."""
        token_s, context_token_s = seconds = [_number(value) for value in stored["seconds"]]
        accepted, rows, spent_s = [_number(value) for value in stored["average"]]
        calibration, typical = Calibration.from_json(stored["calibration"]), _number(stored["typical"])
        if any(value > _ETERNITY_S for value in (*seconds, spent_s)) or max(accepted, rows) > _MANY or typical > 1.0:
            raise ValueError("out of range")
        costs = DraftCosts(Price(token_s, context_token_s))
        average = Yield(accepted, rows, spent_s, LONG_RUN_WEIGHT, LONG_RUN)
        return cls(costs, average, calibration, typical=typical, tried=True)


@dataclass(slots=True)
class Outlook:
    """What is expected of a drafter in this request."""

    known: Knowledge
    average: Yield
    trust: Trust = field(default_factory=Trust)
    pace: Pace = field(default_factory=Pace)

    def acceptance(self, confidence: float) -> float:
        """The probability that a token is accepted, if those before it are."""
        if confidence == CERTAIN:
            return 1.0
        return self.trust.correct(self.known.calibration.acceptance(confidence))

    def proposal(self, draft: Draft) -> Proposal:
        return Proposal(draft, [self.acceptance(confidence) for confidence in _confidence(draft)])

    def learn_written(self, draft: Draft, written: Sequence[int]) -> int:
        """Learn from what the target wrote how certain tokens fared or, if not verified, would have fared.

        Returns:
            How many of the written tokens the draft holds, from the first on.
        """
        children: dict[int, list[int]] = {}
        for index, parent in enumerate(draft.parent_indices):
            children.setdefault(parent, []).append(index)
        confidence, last = _confidence(draft), -1
        for depth, token in enumerate(written):
            below: Sequence[int] = children.get(last, ())
            last = next((index for index in below if draft.tokens[index] == token), -2)
            for index in below:
                self._learn_token(confidence[index], index == last, first=index == below[0])
            if last < 0:
                return depth
        return len(written)

    def learn_verdict(self, draft: Draft, verdict: Verdict) -> None:
        """Learn from what the target said of drawn tokens. Those it did not look at teach nothing."""
        confidence, path = _confidence(draft), verdict.path
        for index in path:
            self._learn_token(confidence[index], True)
        if not verdict.bonus:
            last = path[-1] if path else -1
            for index, parent in enumerate(draft.parent_indices):
                if parent == last:
                    self._learn_token(confidence[index], False)

    def learn_round(self, accepted: float, rows: float, spent_s: float) -> None:
        self.average.learn(accepted, rows, spent_s)
        self.known.average.learn(accepted, rows, spent_s)

    def _learn_token(self, confidence: float, accepted: bool, *, first: bool = True) -> None:
        if confidence == CERTAIN:
            return
        expected = self.known.calibration.acceptance(confidence)
        if first:  # siblings are no steps of a chain, of which this is the average
            self.known.typical += _FOLLOW_TYPICAL * (expected - self.known.typical)
        self.trust.learn(expected, accepted)
        self.known.calibration.learn(confidence, accepted)


class Pursuit:
    """Says after each drafted token whether the next one is worth its price, and notes what drafting takes.

    The next token is drafted only while its survival exceeds current rate x (its draft cost + its row cost).

    Args:
        outlook: what is expected of the drafter.
        shared: the pass that verifies the draft.
        speed: that is reached without this draft, as a multiple of plain decoding's.
        clock: seconds, as if the request drafted alone.
        endless: always go on.
    """

    def __init__(
        self, outlook: Outlook, shared: Pass, speed: float, clock: Callable[[], float], *, endless: bool = False
    ) -> None:
        self._outlook = outlook
        self._shared = shared
        self._clock = clock
        self._endless = endless
        self._company = outlook.known.company(shared.load)
        self._rate = max(shared.expected(outlook.average, self._company), speed, 1.0) * shared.rate
        self._survival = 1.0
        self._times = [clock()]
        self._certain = 0

    def __call__(self, confidence: float) -> bool:
        if confidence == CERTAIN:
            self._certain += 1  # no step of the drafter's own: its time is the next token's
        else:
            self._times.append(self._clock())
        self._survival *= self._outlook.acceptance(confidence)
        drafted = len(self._times) - 1 + self._certain
        price = self._outlook.known.costs.token_s / self._company
        price += self._shared.seconds(drafted + 1) - self._shared.seconds(drafted)
        expected = self._shared.load.value * self._survival * self._outlook.trust.correct(self._outlook.known.typical)
        return self._endless or expected > self._rate * price

    def finish(self, tokens: int, unread: int) -> float:
        """Note what a draft of so many tokens took; the seconds that its tokens cost a request which drafts alone,
        without the reading.

        Args:
            tokens: how many were proposed, those that were certain included.
            unread: tokens of the context that were read first.
        """
        costs, total = self._outlook.known.costs, self._clock() - self._times[0]
        tokens -= self._certain
        if tokens <= 0:
            return total
        first, *others = self._token_seconds(tokens, total)
        if unread <= _IN_STEP:
            costs.observe_token(first)
        elif unread >= _MANY_UNREAD:
            costs.observe_reading(unread, max(first - costs.token_s, 0.0))
        for seconds in others:
            costs.observe_token(seconds)
        return tokens * costs.token_s

    def _token_seconds(self, tokens: int, total: float) -> Iterable[float]:
        """Seconds per token; equal shares where the drafter did not ask after each."""
        if len(self._times) != tokens + 1:
            return (total / tokens,) * tokens
        return (later - earlier for earlier, later in zip(self._times, self._times[1:], strict=False))


def promised_tokens(draft: Draft) -> float:
    """How many of its tokens a drafter believes will be accepted, if all are verified."""
    survival: list[float] = []
    for confidence, parent in zip(_confidence(draft), draft.parent_indices, strict=True):
        survival.append(confidence * (survival[parent] if parent >= 0 else 1.0))
    return sum(survival)


def _number(value: Any) -> float:
    """A finite number that is not negative. Raises ValueError for anything else."""
    if not isinstance(value, int | float) or not 0.0 <= value < math.inf:
        raise ValueError(f"{value!r:.40} is no amount")
    return float(value)


def _confidence(draft: Draft) -> Sequence[float]:
    return draft.confidence or (UNKNOWN_CONFIDENCE,) * len(draft.tokens)
