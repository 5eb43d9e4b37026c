"""How much of prompts a pass reads beside answers that are being written."""

from __future__ import annotations

import math

STEP_ROWS = 256  # as many as the native engine takes through its layers together: of more, weights are read twice
LONGEST_S = 0.1  # a pause in an answer that nobody minds
FEWEST_ROWS = 16  # from here on a pass is bound by arithmetic, and a row costs the same in every pass
_UNKNOWN_ROWS = 32  # before anything was measured
_SHARE = 2
_FOLLOW = 0.2


class ReadingPace:
    """Bounds the rows of prompts in a pass.

    Where nobody writes, a pass takes `STEP_ROWS`. Else those who write wait for it: it takes as many rows as a given
    time lasts for at the speed of the last passes that read, but at least twice as many as others write, so that those
    who came last need not wait for most of the others' answers, and never fewer than `FEWEST_ROWS`.

    Args:
        longest_s: that time in seconds.
    """

    def __init__(self, longest_s: float) -> None:
        self._longest_s = longest_s
        self._row_s: float | None = None

    def rows(self, writing: int) -> int:
        """The most rows of prompts for a pass in which others write so many."""
        room = max(STEP_ROWS - writing, FEWEST_ROWS)
        if not writing or self._longest_s == math.inf:
            return room
        timely = _UNKNOWN_ROWS if self._row_s is None else int(self._longest_s / self._row_s) - writing
        return min(max(timely, _SHARE * writing, FEWEST_ROWS), room)

    def observe(self, rows: int, read: int, seconds: float) -> None:
        """Learn from a pass with so many rows, of which `read` were of prompts."""
        if read < FEWEST_ROWS:
            return
        row_s = seconds / rows
        self._row_s = row_s if self._row_s is None else self._row_s + _FOLLOW * (row_s - self._row_s)
