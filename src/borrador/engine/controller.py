"""How many tokens to draft, and who drafts them. Decides speed only: no choice made here can change an answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

LONGEST_DRAFT = 15
_PRIOR_TESTED = 4.0  # how many tested tokens the prior counts for
_FORGET = 0.97  # weight left of what was known when a round is added
_MARGIN = 1.02  # a draft must promise more than this much more speed, or timing noise decides
_FIRST_PAUSE, _LONGEST_PAUSE = 8, 256  # rounds
_PROBE_TOKENS = 2


@dataclass(frozen=True, slots=True)
class Turn:
    """Permission for a drafter to propose up to `budget` tokens."""

    drafter: str
    budget: int


@dataclass(slots=True)
class _Estimate:
    """What is known of one drafter: its step's price, its acceptance rate, and how long it has been resting."""

    step_s: float
    accepted: float
    tested: float = _PRIOR_TESTED
    pause: int = _FIRST_PAUSE
    rested: int = 0

    @property
    def acceptance(self) -> float:
        return self.accepted / self.tested

    def learn(self, tested: int, accepted: int) -> None:
        self.accepted = _FORGET * self.accepted + accepted
        self.tested = _FORGET * self.tested + tested


class Controller:
    """Chooses draft lengths from measured costs and an acceptance rate learnt on the way, kept across requests.

    A draft of γ tokens with acceptance rate α commits 1 + α + ... + α^γ tokens on average and costs T(1 + γ) + γ c; the
    length with the most tokens per second is taken, and 0 is a legal answer. A drafter that is not worth its cost rests
    and is probed again after a pause that doubles with every probe in vain.

    Args:
        pass_s: T(m), seconds of a target pass over m rows.
        step_s: seconds per drafted token, by drafter, in order of preference.
        acceptance: the rate assumed of each drafter before anything is known.
    """

    def __init__(
        self, pass_s: Callable[[int], float], step_s: Mapping[str, float], acceptance: Mapping[str, float]
    ) -> None:
        self._pass_s = pass_s
        self._estimates = {
            name: _Estimate(step_s=cost, accepted=acceptance[name] * _PRIOR_TESTED) for name, cost in step_s.items()
        }

    def plan(self, limit: int) -> Sequence[Turn]:
        """Whom to ask for a draft, the most promising first, until one proposes something.

        Args:
            limit: the most tokens a draft may have.
        """
        limit = min(limit, LONGEST_DRAFT)
        if limit < 1:
            return ()
        promising: list[tuple[float, Turn]] = []
        probes: list[Turn] = []
        for name, estimate in self._estimates.items():
            speed, length = self._best_length(estimate, limit)
            if length:
                promising.append((speed, Turn(name, length)))
            elif estimate.rested >= estimate.pause:
                probes.append(Turn(name, min(_PROBE_TOKENS, limit)))
            else:
                estimate.rested += 1
        promising.sort(key=lambda entry: -entry[0])
        return [*probes, *(turn for _, turn in promising)]

    def observe(self, drafter: str, tested: int, accepted: int) -> None:
        """Learn how a draft fared.

        Args:
            drafter: who proposed it.
            tested: draft tokens that the target looked at.
            accepted: those it agreed with.
        """
        estimate = self._estimates.get(drafter)
        if estimate is None or tested < 1:
            return
        estimate.learn(tested, accepted)
        probed = estimate.rested >= estimate.pause
        estimate.rested = 0
        if probed:
            estimate.pause = min(estimate.pause * 2, _LONGEST_PAUSE)
        if self._best_length(estimate, LONGEST_DRAFT)[1]:
            estimate.pause = _FIRST_PAUSE

    def acceptance(self, drafter: str) -> float:
        """The acceptance rate currently assumed of a drafter."""
        return self._estimates[drafter].acceptance

    def _best_length(self, estimate: _Estimate, limit: int) -> tuple[float, int]:
        """Tokens per second and length of the best draft; length 0 where none is worth it."""
        best, length = _MARGIN / self._pass_s(1), 0
        tokens = survival = 1.0
        for drafted in range(1, limit + 1):
            survival *= estimate.acceptance
            tokens += survival
            speed = tokens / (self._pass_s(1 + drafted) + drafted * estimate.step_s)
            if speed > best:
                best, length = speed, drafted
        return best, length


class FixedLength:
    """Every drafter may propose the same number of tokens each round, in order of preference."""

    def __init__(self, drafters: Sequence[str], draft_tokens: int) -> None:
        self._drafters = tuple(drafters)
        self._draft_tokens = draft_tokens

    def plan(self, limit: int) -> Sequence[Turn]:
        budget = min(self._draft_tokens, limit)
        return [Turn(name, budget) for name in self._drafters] if budget > 0 else ()

    def observe(self, drafter: str, tested: int, accepted: int) -> None:
        pass
