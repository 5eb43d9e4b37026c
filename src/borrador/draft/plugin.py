"""Drafters from other packages, which may do anything but change an answer.

A package offers drafters as entry points of the group `borrador.drafters`; docs/drafters.md has an example. Their code
runs in a thread of its own with deadlines. One that raises, hangs or proposes what is no draft is parked with a
message: it is not asked again, and answers go on without it.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from borrador.draft.protocol import (
    Drafter,
    DraftSession,
    GoOn,
    Price,
    SeparatingDrafter,
    SuccessorLearner,
    always,
    believed,
)
from borrador.draft.worker import Worker
from borrador.errors import UsageError
from borrador.models.target import BestTokens
from borrador.sampling.shaping import Shaper
from borrador.types import Draft

GROUP = "borrador.drafters"
_OPEN_S, _PROPOSE_S, _LEARN_S = 30.0, 1.0, 1.0
_MOST_SUCCESSORS = 64
_log = logging.getLogger("borrador")


@dataclass(frozen=True, slots=True)
class DrafterContext:
    """What a plug-in is told of the target when it is made.

    Attributes:
        vocabulary_size: token ids are below this.
        end_ids: tokens that end an answer.
        encode: text to token ids.
        decode: token ids to text.
    """

    vocabulary_size: int
    end_ids: frozenset[int]
    encode: Callable[[str], list[int]]
    decode: Callable[[Sequence[int]], str]


Factory = Callable[[DrafterContext], Drafter]


def find_plugins() -> Mapping[str, EntryPoint]:
    """The installed plug-ins by name."""
    return {entry.name: entry for entry in entry_points(group=GROUP)}


class PluginDrafter:
    """A plug-in behind the contract of a drafter.

    Its tokens are judged as certain ones: a q cannot be checked, and with a wrong one answers would no longer follow
    the target's distribution.

    Args:
        name: of the entry point; the drafter's own name is not looked at.
        factory: makes the drafter.
        context: handed to the factory.
        propose_s: seconds that a proposal may take.

    Raises:
        UsageError: the plug-in cannot be made.
    """

    def __init__(self, name: str, factory: Factory, context: DrafterContext, *, propose_s: float = _PROPOSE_S) -> None:
        self.name = name
        self.vocabulary_size = context.vocabulary_size
        self.propose_s = propose_s
        self.parked = False
        self.worker = Worker(f"drafter {name}")
        try:
            self._drafter = self.worker.call(factory, context, within_s=_OPEN_S)
        except Exception as error:
            self.worker.close()
            raise UsageError(
                f"the drafter {name} cannot be made: {_describe(error)}", "Repair or remove the package it comes from."
            ) from error

    @classmethod
    def load(cls, entry: EntryPoint, context: DrafterContext) -> PluginDrafter:
        """Import a plug-in and make its drafter. Raises UsageError where that fails."""
        return cls(entry.name, lambda given: entry.load()(given), context)

    def open(self, shaper: Shaper, /) -> DraftSession:
        return self.open_in("", shaper)

    def open_in(self, namespace: str, shaper: Shaper, /) -> DraftSession:
        """The plug-in is told the namespace where it has an `open_in` of its own."""
        session = self.guard(None, self._open, namespace, shaper, within_s=_OPEN_S)
        if isinstance(session, SuccessorLearner):
            return _LearningSession(self, session)
        return PluginSession(self, session)

    def price(self) -> Price:
        """The plug-in's own word, corrected later by what drafting really takes."""
        price = self.guard(None, self._drafter.price, within_s=_OPEN_S)
        try:
            token_s, context_token_s = price if price is not None else Price()
            if not all(0.0 <= value < math.inf for value in (token_s, context_token_s)):
                raise ValueError(f"its price is {price!r:.80}")
        except (TypeError, ValueError) as error:
            self.park(error)
            return Price()
        return Price(float(token_s), float(context_token_s))

    def close(self) -> None:
        self.guard(None, self._drafter.close, within_s=_LEARN_S)
        self.worker.close()

    def guard(self, otherwise: Any, function: Callable[..., Any], *arguments: Any, within_s: float) -> Any:
        """What the function gives, within so many seconds; `otherwise` once the plug-in is parked."""
        if self.parked:
            return otherwise
        try:
            return self.worker.call(function, *arguments, within_s=within_s)
        except Exception as error:  # noqa: BLE001 (a plug-in may raise anything)
            self.park(error)
            return otherwise

    def _open(self, namespace: str, shaper: Shaper) -> DraftSession:
        if isinstance(self._drafter, SeparatingDrafter):
            return self._drafter.open_in(namespace, shaper)
        return self._drafter.open(shaper)

    def park(self, error: Exception) -> None:
        """Ask it for nothing more, and say why."""
        if not self.parked:
            self.parked = True
            _log.warning("the drafter %s is parked: %s; answers go on without it", self.name, _describe(error))


class PluginSession:
    """A plug-in's session behind the contract of one; empty drafts where there is none, or it is parked."""

    def __init__(self, drafter: PluginDrafter, session: Any) -> None:
        self._drafter = drafter
        self._session = session

    def propose(self, context: Sequence[int], budget: int, _go_on: GoOn = always) -> Draft:
        # The plug-in gets copies: its thread may still look at them when the answer has gone on.
        nothing = Draft(drafter=self._drafter.name)
        given = self._guard(nothing, "propose", list(context), budget, within_s=self._drafter.propose_s)
        try:
            return check_draft(given, self._drafter.name, budget, self._drafter.vocabulary_size)
        except (TypeError, ValueError) as error:
            self._drafter.park(error)
            return nothing

    def unread(self, context: Sequence[int]) -> int:
        count = self._guard(0, "unread", list(context), within_s=self._drafter.propose_s)
        return min(count, len(context)) if type(count) is int and count > 0 else 0

    def observe(self, committed: Sequence[int]) -> None:
        self._guard(None, "observe", tuple(committed), within_s=_LEARN_S)

    def close(self) -> None:
        self._guard(None, "close", within_s=_LEARN_S)

    def _guard(self, otherwise: Any, method: str, *arguments: Any, within_s: float) -> Any:
        if self._session is None:
            return otherwise
        return self._drafter.guard(otherwise, lambda: getattr(self._session, method)(*arguments), within_s=within_s)


class _LearningSession(PluginSession):
    """One that also learns successors."""

    def __init__(self, drafter: PluginDrafter, session: SuccessorLearner) -> None:
        super().__init__(drafter, session)
        wanted = session.successors
        self.successors = min(wanted, _MOST_SUCCESSORS) if type(wanted) is int and wanted > 0 else 1

    def learn_successors(self, context: Sequence[int], draft: Draft, best: BestTokens) -> None:
        self._guard(None, "learn_successors", list(context), draft, best, within_s=_LEARN_S)


def check_draft(given: object, name: str, budget: int, vocabulary_size: int) -> Draft:
    """A draft as it should be, by the drafter of this name, without its q; more tokens than asked for are cut off.

    Raises:
        TypeError, ValueError: it is none.
    """
    if not isinstance(given, Draft):
        raise TypeError(f"it proposed {given!r:.60}, which is no Draft")
    tokens = tuple(_integer("token", token, 0, vocabulary_size - 1) for token in given.tokens)
    parents = given.parents
    if parents is not None:
        if len(parents) != len(tokens):
            raise ValueError(f"it proposed {len(tokens)} tokens with {len(parents)} parents")
        parents = tuple(_integer("parent", parent, -1, index - 1) for index, parent in enumerate(parents))
        if len(set(zip(parents, tokens, strict=True))) < len(tokens):
            raise ValueError("it proposed a token twice below one parent")
    if len(given.confidence) not in (0, len(tokens)):
        raise ValueError(f"it proposed {len(tokens)} tokens with {len(given.confidence)} confidences")
    confidence = tuple(_belief(value) for value in given.confidence)
    return Draft(tokens=tokens, parents=parents, drafter=name, confidence=confidence).first(budget)


def _integer(what: str, value: Any, low: int, high: int) -> int:
    number = value.__index__() if hasattr(value, "__index__") else None
    if number is None or not low <= number <= high:
        raise ValueError(f"it proposed the {what} {value!r:.40}, outside {low} to {high}")
    return int(number)


def _belief(value: Any) -> float:
    number = float(value)
    if not 0.0 <= number <= 1.0:
        raise ValueError(f"it proposed the confidence {value!r:.40}, outside 0 to 1")
    return believed(number)


def _describe(error: BaseException) -> str:
    text = str(error).strip().split("\n")[0][:200]
    return f"{type(error).__name__}{': ' + text if text else ''}"
