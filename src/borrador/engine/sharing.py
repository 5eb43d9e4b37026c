"""Which of the requests that share a pass draft, and how much: what `choose` does, with an eye on the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from borrador.draft.steps import together
from borrador.engine.candidates import Load, PassCost, choose
from borrador.engine.costs import behind
from borrador.engine.member import Member
from borrador.engine.pace import Purse
from borrador.engine.worth import token_values
from borrador.types import Draft

_FEW_READ = 16  # rows of prompts; with more, a pass is bound by arithmetic, and drafts cost what they save
_NEARBY = 4  # rows over which the price of one is averaged
_WORTH = 1.25  # an accepted token must save so many times what its row takes, or only near certainty pays
_CAUTION = 0.8  # hopes of the best of many candidates are too high by so much
_MARGIN = 1.06  # speed that drafts must promise where other requests wait for them
_MOST_ASKING = 0.02  # share of a pass that asking everyone may take where all wait for it
_NOTHING = Draft()


@dataclass(frozen=True, slots=True)
class Sharing:
    """A pass that requests share, before it runs.

    Attributes:
        load: of it, without drafts.
        pass_s: T(m), seconds of a pass over m rows; None where it is not known, and drafts are verified whole.
        read: rows of prompts in it.
        draining: no more requests wait for a turn, or are expected.
        purse: what drafts have saved so far where several share passes.
    """

    load: Load
    pass_s: PassCost | None
    read: int
    draining: bool
    purse: Purse

    def draft(self, playing: Sequence[Member]) -> None:
        """Give every request that plays a round its draft."""
        if self.pass_s is None or not playing:
            asking = [member for member in playing if member.asks(pays=True, always=True)]
        else:
            asking = self._weigh(playing, behind(self.pass_s, self.load))
        drafts = dict(zip(asking, self._choose(asking), strict=True))
        for member in playing:
            member.place(drafts.get(member, _NOTHING))

    def learn(self, playing: Sequence[Member], rows: int) -> None:
        """Let requests whose drafters were asked learn what came of it in a pass that had so many rows."""
        if self.pass_s is None:
            return
        pass_s = behind(self.pass_s, self.load)
        row_s = (pass_s(rows) - pass_s(self.load.rows)) / max(rows - self.load.rows, 1)
        gained_s = sum(member.settle(row_s) for member in playing)
        if self.load.requests > 1:
            self.purse.settle(gained_s, pass_s(self.load.rows))

    def _weigh(self, playing: Sequence[Member], pass_s: PassCost) -> list[Member]:
        """Those whose drafters are asked, for what their tokens may save."""
        row_s = (pass_s(self.load.rows + _NEARBY) - pass_s(self.load.rows)) / _NEARBY
        values = token_values(pass_s, self.load, [member.steps_left for member in playing], draining=self.draining)
        asking_s = sum(member.pace.ask_s for member in playing)
        alone = self.load.requests == 1
        cheap = alone or (asking_s < _MOST_ASKING * pass_s(self.load.rows) and not self.purse.is_empty)
        few = self.read <= _FEW_READ and cheap
        asking: list[Member] = []
        for member, token_s in zip(playing, values, strict=True):
            member.token_s = token_s
            pays = few and (alone or token_s > _WORTH * row_s)
            if member.asks(pays=pays, always=alone):
                asking.append(member)
        return asking

    def _choose(self, asking: Sequence[Member]) -> Sequence[Draft]:
        if not asking:
            return ()
        several = self.load.requests > 1
        clocks = [member.clock for member in asking]
        if self.pass_s is None:
            return choose(together([member.gather(self.load) for member in asking], clocks), None, self.load)
        pass_s = behind(self.pass_s, self.load)
        value_s = pass_s(self.load.rows) / self.load.requests / (_CAUTION if several else 1.0)
        loads = [self.load._replace(value=member.token_s / value_s) for member in asking]
        gathered = together([member.gather(load) for member, load in zip(asking, loads, strict=True)], clocks)
        return choose(gathered, pass_s, self.load, _MARGIN if several else 1.0)
