"""From what was measured and learnt of a model on this machine to the drafting plan of each request."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from typing import Any

from borrador.draft.protocol import Drafter, Price, VariedDrafter
from borrador.engine.candidates import Load, PassCost
from borrador.engine.controller import Controller
from borrador.engine.costs import RowCosts
from borrador.engine.drafting import Knowledge
from borrador.engine.estimates import Jury
from borrador.engine.fixed_length import FixedLength
from borrador.engine.measuring import measure_level, measure_row_costs
from borrador.engine.profile import Profile
from borrador.engine.proposer import DraftPlan
from borrador.models.target import Target

COSTS = "row_costs"  # the value of a profile that says what passes cost
_SAVED_EVERY_S = 60.0


class Planner:
    """Measures the costs of passes and drafters, unless a profile knows them, and opens plans.

    Args:
        target: an empty sequence; it is left empty.
        drafters: in order of preference.
        draft_tokens: tokens drafted each round; None lets costs decide, which are then measured here.
        profile: knows costs and drafters from earlier, and is told what is learnt; None is for neither.

    Attributes:
        drafters: by name.
    """

    def __init__(
        self,
        target: Target,
        drafters: Mapping[str, Drafter],
        *,
        draft_tokens: int | None = None,
        profile: Profile | None = None,
    ) -> None:
        self.drafters = drafters
        self._prices: dict[str, Price] = {}  # as far as nothing better was known
        self._draft_tokens = draft_tokens or 0
        self._profile = profile
        self._costs: RowCosts | None = None
        self._controller: Controller | None = None
        self._saved = time.monotonic()
        if draft_tokens is None and drafters:
            stored = profile.read() if profile is not None else {}
            self._costs = _stored_costs(stored, target) or measure_row_costs(target)
            self._controller = self._make_controller(self._costs, stored)

    @property
    def pass_s(self) -> PassCost | None:
        """T(m); None where it is not needed."""
        return self._costs

    def open(self, draft_tokens: int | None = None) -> DraftPlan:
        """The plan of a request.

        Args:
            draft_tokens: tokens drafted each round of this request; None is as for all.
        """
        if draft_tokens is None and self._controller is not None:
            return self._controller.open()
        return FixedLength(tuple(self.drafters), self._draft_tokens if draft_tokens is None else draft_tokens)

    def observe_pass(self, rows: int, seconds: float, load: Load) -> None:
        """Learn what a pass of decoding really took."""
        if self._costs is not None:
            self._costs.observe(rows, seconds, load)

    @property
    def learnt(self) -> Mapping[str, Any]:
        """What is known of drafters, as a profile keeps it. Empty where nothing is learnt."""
        if self._controller is None:
            return {}
        drafters = {self._known_as(name): known for name, known in self._controller.as_json().items()}
        return {"drafters": drafters, "jury": self._controller.jury.as_json()}

    def restore(self, learnt: Mapping[str, Any]) -> None:
        """Know of drafters what this says, of which nothing must be there, and no more. T(m) stays as it is."""
        if self._costs is not None and self._controller is not None:
            self._controller = self._make_controller(self._costs, learnt)

    def save(self, *, now: bool = True) -> None:
        """Keep what was learnt for the next start; without `now`, if that is long ago."""
        if self._profile is None or self._costs is None or self._controller is None:
            return
        if now or time.monotonic() - self._saved > _SAVED_EVERY_S:
            learnt = self.learnt
            drafters = {**_mapping(self._profile.read().get("drafters")), **learnt["drafters"]}
            self._profile.write({**learnt, COSTS: self._costs.as_json(), "drafters": drafters})
            self._saved = time.monotonic()

    def _make_controller(self, costs: RowCosts, learnt: Mapping[str, Any]) -> Controller:
        known = _mapping(learnt.get("drafters"))
        prices = {name: _knowledge(known.get(self._known_as(name))) or self._price(name) for name in self.drafters}
        jury: Jury | None = None
        with contextlib.suppress(ValueError, TypeError):
            jury = Jury.from_json(learnt.get("jury"))
        return Controller(costs, prices, jury=jury)

    def _known_as(self, name: str) -> str:
        """The name under which is kept what is learnt of a drafter."""
        drafter = self.drafters[name]
        return f"{name} {drafter.variant}" if isinstance(drafter, VariedDrafter) and drafter.variant else name

    def _price(self, name: str) -> Price:
        if name not in self._prices:
            self._prices[name] = self.drafters[name].price()
        return self._prices[name]


def _stored_costs(stored: Mapping[str, Any], target: Target) -> RowCosts | None:
    """The costs known, at the speed that memory has now."""
    try:
        costs = RowCosts.from_json(stored[COSTS])
    except (ValueError, KeyError, TypeError):
        return None
    costs.scale(measure_level(target))
    return costs


def _knowledge(stored: Any) -> Knowledge | None:
    try:
        return Knowledge.from_json(stored)
    except (ValueError, KeyError, TypeError):
        return None


def _mapping(stored: Any) -> Mapping[str, Any]:
    return stored if isinstance(stored, dict) else {}
