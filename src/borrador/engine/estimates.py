"""What is learnt of a drafter: how often its tokens are accepted, and what drafting with it brings."""

from __future__ import annotations

import math
from typing import Any

UNKNOWN_CONFIDENCE = 0.6  # of a token whose drafter has no opinion
_BUCKETS = 16
_PRIOR_TESTED = 3.0  # tested tokens that a drafter's own belief counts for
_JURY_PRIOR = 5.0
_SURE = 0.8
_TRUST_IN_ONE = 0.75  # in tokens that one drafter alone proposed, before anything is known
_KEEP = 0.99  # what a bucket keeps of its counts with every token: the last hundred matter
_PRIOR_TRUST = 5.0
_KEEP_TRUST = 0.97
_CERTAIN = 0.98
_BELIEVED = 0.9  # an unknown drafter is not believed more than this, however sure it is


class Calibration:
    """How often tokens of a given confidence were accepted, each given that those before it were.

    Counts per bucket, two buckets for every halving of the doubt (1 - confidence). Before anything is known a drafter
    is believed.

    Args:
        prior: tested tokens that the drafter's own belief counts for.
        most_believed: however sure it is.
        trust: share of it that is believed where it is not sure.
    """

    def __init__(self, prior: float = _PRIOR_TESTED, most_believed: float = _BELIEVED, trust: float = 1.0) -> None:
        self._prior = prior
        self._most_believed = most_believed
        self._trust = trust
        self._tested = [0.0] * _BUCKETS
        self._accepted = [0.0] * _BUCKETS

    def acceptance(self, confidence: float) -> float:
        bucket = _bucket(confidence)
        believed = min(confidence, self._most_believed) if confidence > 0.0 else 0.0
        believed *= self._trust if believed < _SURE else 1.0
        return (self._accepted[bucket] + self._prior * believed) / (self._tested[bucket] + self._prior)

    def learn(self, confidence: float, accepted: bool) -> None:
        bucket = _bucket(confidence)
        self._tested[bucket] = _KEEP * self._tested[bucket] + 1.0
        self._accepted[bucket] = _KEEP * self._accepted[bucket] + accepted

    def as_json(self) -> list[list[float]]:
        return [[*self._tested], [*self._accepted]]

    @classmethod
    def from_json(cls, stored: Any, empty: Calibration | None = None) -> Calibration:
        """What `as_json` gave, in place of what `empty` holds. Raises ValueError or TypeError for anything else."""
        calibration = empty or cls()
        calibration._tested, calibration._accepted = ([float(count) for count in counts] for counts in stored)
        pairs = list(zip(calibration._tested, calibration._accepted, strict=True))
        if len(pairs) != _BUCKETS or not all(0.0 <= accepted <= tested < math.inf for tested, accepted in pairs):
            raise ValueError("counts of accepted tokens must not exceed those of tested ones")
        return calibration


class Jury:
    """What drafters' hopes are worth once they are put together.

    Of several hopes the highest is taken, and the most hopeful tokens are verified: both are wrong on the bright side.
    A token that several drafters proposed is another matter than one that the others did not.
    """

    def __init__(self) -> None:
        self._alone = Calibration(_JURY_PRIOR, 1.0, _TRUST_IN_ONE)
        self._agreed = Calibration(_JURY_PRIOR, 1.0)

    def __call__(self, hope: float, votes: int) -> float:
        return hope if hope >= 1.0 else self._calibration(votes).acceptance(hope)

    def learn(self, hope: float, votes: int, accepted: bool) -> None:
        if hope < 1.0:
            self._calibration(votes).learn(hope, accepted)

    def as_json(self) -> list[list[list[float]]]:
        return [self._alone.as_json(), self._agreed.as_json()]

    @classmethod
    def from_json(cls, stored: Any) -> Jury:
        """What `as_json` gave. Raises ValueError or TypeError for anything else."""
        jury = cls()
        alone, agreed = stored
        jury._alone = Calibration.from_json(alone, jury._alone)
        jury._agreed = Calibration.from_json(agreed, jury._agreed)
        return jury

    def _calibration(self, votes: int) -> Calibration:
        return self._agreed if votes > 1 else self._alone


class Trust:
    """How one request's text departs from what is usual: tokens accepted, by tokens expected to be."""

    def __init__(self) -> None:
        self._accepted = self._expected = _PRIOR_TRUST

    def correct(self, acceptance: float) -> float:
        return min(acceptance * self._accepted / self._expected, _CERTAIN)

    def learn(self, expected: float, accepted: bool) -> None:
        faded = (1.0 - _KEEP_TRUST) * _PRIOR_TRUST
        self._expected = _KEEP_TRUST * self._expected + faded + expected
        self._accepted = _KEEP_TRUST * self._accepted + faded + accepted


class Yield:
    """What a round with a drafter's tokens brings and takes, on average.

    Args:
        accepted: tokens of the draft that are expected to be accepted.
        rows: tokens expected to be verified.
        spent_s: seconds expected to go into drafting them.
        weight: rounds that these assumptions count for.
        window: rounds that are remembered.
    """

    def __init__(self, accepted: float, rows: float, spent_s: float, weight: float, window: float) -> None:
        self._sums = [accepted * weight, rows * weight, spent_s * weight]
        self._rounds = weight
        self._keep = 1.0 - 1.0 / window

    @property
    def accepted(self) -> float:
        return self._sums[0] / self._rounds

    @property
    def rows(self) -> float:
        return self._sums[1] / self._rounds

    @property
    def spent_s(self) -> float:
        return self._sums[2] / self._rounds

    def learn(self, accepted: float, rows: float, spent_s: float) -> None:
        """Add a round."""
        self._sums = [
            self._keep * known + seen for known, seen in zip(self._sums, (accepted, rows, spent_s), strict=True)
        ]
        self._rounds = self._keep * self._rounds + 1.0

    def copy(self, weight: float, window: float) -> Yield:
        """The same averages, as assumptions of so many rounds."""
        return Yield(self.accepted, self.rows, self.spent_s, weight, window)


class Allowance:
    """Time that may be spent on trying a drafter that does not pay, in plain passes.

    Rounds without it add a small share of their time; every trial in vain halves that share, a success restores it. So
    trials can cost this share and no more, and a drafter that has become right is found out again.
    """

    FIRST, MOST = 2.0, 10.0
    MOST_SHARE, LEAST_SHARE = 0.02, 0.004

    def __init__(self) -> None:
        self._left = self.FIRST
        self._share = self.MOST_SHARE

    def covers(self, passes: float) -> bool:
        return self._left >= passes

    def rest(self) -> None:
        self._left = min(self._left + self._share, self.MOST)

    def settle(self, gained: float, *, trial: bool) -> None:
        """Account for a draft that gained (or lost) so many plain passes against plain decoding."""
        self._left = min(max(self._left + gained, 0.0), max(self._left, self.FIRST))
        if gained >= 0.0:
            self._share = self.MOST_SHARE
        elif trial:
            self._share = max(self._share / 2.0, self.LEAST_SHARE)


def _bucket(confidence: float) -> int:
    if not confidence > 0.0:
        return 0
    doubt = max(1.0 - confidence, 1e-6)
    return min(int(-2.0 * math.log2(doubt)), _BUCKETS - 1)
