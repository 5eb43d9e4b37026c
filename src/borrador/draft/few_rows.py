"""What a draft model's passes over a few rows cost, and how long a hint may be for it to pay."""

from __future__ import annotations

import time

from borrador.models.target import Rows, Target

FEW_ROWS = 4  # a pass with a hint has no more
_ASSUMED = (1.0, 1.05, 1.1, 1.15)  # hopeful, so that it is found out
_FOLLOW_LEVEL = 0.1  # share of a surprise that moves all sizes: the machine has become slower
_FOLLOW_SHAPE = 0.05  # and the size it came from
_LARGEST_SURPRISE, _LARGEST_MISFIT = 0.5, 0.1


class FewRows:
    """Seconds of passes over 1 to 4 rows, learnt from passes.

    A size that was not seen is assumed to cost little more than the next smaller one, or less than the next larger.
    """

    def __init__(self) -> None:
        self._seconds: list[float | None] = [None] * FEW_ROWS

    def observe(self, rows: int, seconds: float) -> None:
        """Learn of a pass; those over more rows teach nothing."""
        if rows > FEW_ROWS or seconds <= 0.0:
            return
        known = self._seconds[rows - 1]
        if known is None:
            self._seconds[rows - 1] = seconds
            return
        surprise = seconds / known - 1.0
        level = 1.0 + _FOLLOW_LEVEL * min(max(surprise, -_LARGEST_SURPRISE), _LARGEST_SURPRISE)
        self._seconds = [each and level * each for each in self._seconds]
        self._seconds[rows - 1] = known * (
            level + _FOLLOW_SHAPE * min(max(surprise, -_LARGEST_MISFIT), _LARGEST_MISFIT)
        )

    def seconds(self, rows: int) -> float:
        """Seconds of a pass over 1 to 4 rows; where none has been seen, in the time of one row."""
        known = {index: seconds for index, seconds in enumerate(self._seconds) if seconds is not None} or {0: 1.0}
        nearest = min(known, key=lambda index: abs(index + 1 - rows))
        return known[nearest] * _ASSUMED[rows - 1] / _ASSUMED[nearest]

    def hint_length(self, unread: int, trust: float) -> int:
        """How many hinted tokens a pass should evaluate, for the most tokens in the time.

        Args:
            unread: rows of the pass without a hint; 4 or more get none.
            trust: the probability that a hinted token holds, if those before it do.
        """
        best, best_rate, tokens, survival = 0, 0.0, 0.0, 1.0
        for length in range(max(FEW_ROWS - unread, 0) + 1):
            tokens += survival
            survival *= trust
            rate = tokens / self.seconds(min(unread + length, FEW_ROWS))
            if rate > best_rate:
                best, best_rate = length, rate
        return best


def fastest_pass(target: Target, rows: Rows, repeats: int) -> float:
    """Seconds of the fastest of several passes, none of which is kept."""
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        target.forward(rows)
        seconds.append(time.perf_counter() - start)
        target.rewind(target.length)
    return min(seconds)
