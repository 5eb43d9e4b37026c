"""How often a request's drafters are asked where many requests share a pass. Decides speed only."""

from __future__ import annotations

_KEEP = 0.9  # of the balance, with every round that asked: the last ten matter
_FIRST_ROUNDS = 4  # that are asked whatever comes of it
_LONGEST_REST = 32  # rounds
_FIRST_ASK_S = 1e-4
_STAKE = 0.005  # share of the time of passes that several share which may be lost on drafts
_MOST_SAVED = 0.25  # of what drafts have saved, so much of a pass may be lost again


class Pace:
    """Lets a request's drafters rest while asking them takes more time than it saves.

    Alone, a request asks at a price that no pass notices. Beside many others the time adds up, while what a draft saves
    is a share of a pass that all of them wait for. After a round in vain the rest doubles; one that pays ends it.

    Attributes:
        ask_s: seconds that asking takes, on average of the last rounds.
    """

    def __init__(self) -> None:
        self.ask_s = _FIRST_ASK_S
        self._balance_s = 0.0
        self._left = _FIRST_ROUNDS
        self._rest = 1
        self._resting = 0

    @property
    def is_resting(self) -> bool:
        """The drafters are not asked in the round that begins now."""
        return self._resting > 0

    def asks(self) -> bool:
        """Whether the drafters are asked in the round that begins now."""
        if self._resting:
            self._resting -= 1
            return False
        return True

    def settle(self, saved_s: float, spent_s: float) -> None:
        """Account for a round that asked.

        Args:
            saved_s: seconds of plain passes that the accepted tokens saved, less what their rows took.
            spent_s: seconds that asking took.
        """
        self.ask_s = _KEEP * self.ask_s + (1.0 - _KEEP) * spent_s
        self._balance_s = _KEEP * self._balance_s + saved_s - spent_s
        self._left = max(self._left - 1, 0)
        if self._balance_s >= 0.0:
            self._rest = 1
        elif saved_s > spent_s:
            self._rest = max(self._rest // 2, 1)
        elif not self._left:
            self._resting, self._rest = self._rest, min(2 * self._rest, _LONGEST_REST)


class Purse:
    """What drafts have saved in the passes that several requests share, less what they took: while that is less than
    nothing, none is asked for. A small share of every pass is put in, for finding out whether that has changed."""

    def __init__(self) -> None:
        self._balance_s = 0.0

    @property
    def is_empty(self) -> bool:
        return self._balance_s < 0.0

    def settle(self, gained_s: float, pass_s: float) -> None:
        """Account for a pass.

        Args:
            gained_s: seconds that the drafts of all requests saved, less what they took.
            pass_s: of the pass without drafts.
        """
        self._balance_s = min(self._balance_s + gained_s + _STAKE * pass_s, _MOST_SAVED * pass_s)
