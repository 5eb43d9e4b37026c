"""The contract a drafter fulfils. A drafter can be wrong at will; it can never change an answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from borrador.draft.steps import Steps
from borrador.models.target import BestTokens
from borrador.sampling.shaping import Shaper
from borrador.types import Draft

GoOn = Callable[[float], bool]
Hint = Callable[[Sequence[int], Sequence[int], int], tuple[int, ...]]
CERTAIN = 1.0  # the confidence of a token to which there is no alternative, if those before it are right
_SUREST_BELIEF = 1.0 - 1e-6


def believed(probability: float) -> float:
    """A model's own probability as a confidence: however sure a model is, its token is not certain."""
    return min(probability, _SUREST_BELIEF)


def always(_confidence: float) -> bool:
    """Draft on, whatever the confidence."""
    return True


class Price(NamedTuple):
    """What drafting costs, in seconds; zeros for a drafter that runs no model.

    Attributes:
        token_s: one proposed token.
        context_token_s: one token of the context, read before anything can be proposed.
    """

    token_s: float = 0.0
    context_token_s: float = 0.0


class DraftSession(Protocol):
    """Drafting for one request."""

    def propose(self, context: Sequence[int], budget: int, go_on: GoOn = always) -> Draft:
        """Propose at most `budget` tokens to follow `context` (prompt and answer so far).

        An empty draft is a legal answer. A chain unless the draft carries parents.

        Args:
            context: what was committed so far.
            budget: the most tokens to propose.
            go_on: for drafters whose tokens cost time: told the confidence of each token as soon as it is there, and
                says whether the next one is worth its price. Where tokens are free it need not be asked.
        """
        ...

    def unread(self, context: Sequence[int]) -> int:
        """How many tokens of `context` must be read before the first proposal; 0 where reading is free."""
        ...

    def observe(self, committed: Sequence[int]) -> None:
        """Learn the tokens that were committed after the last `propose`."""
        ...

    def close(self) -> None:
        """Free what belongs to this request."""
        ...


@runtime_checkable
class SteppedSession(DraftSession, Protocol):
    """A draft session whose model several requests can share a pass of."""

    def steps(self, context: Sequence[int], budget: int, go_on: GoOn = always) -> Steps[Draft]:
        """What `propose` does, in steps; see `borrador.draft.steps`."""
        ...


@runtime_checkable
class Hinting(Protocol):
    """What sessions that draft at no cost may offer besides."""

    def hint(self, context: Sequence[int], path: Sequence[int], count: int, /) -> tuple[int, ...]:
        """A guess at no cost of at most `count` tokens to follow `context` and `path`, tokens that are not committed.

        Changes nothing, and may be asked between a `propose` with the same context and the next `observe`. A draft
        model checks it in its own passes.
        """
        ...


@runtime_checkable
class HintTaker(Protocol):
    """A draft session whose work is less where others hint at what it will propose."""

    def use_hints(self, hints: Sequence[Hint]) -> None:
        """Ask these `Hinting.hint`s from now on, the first of them first. They never change what is proposed."""
        ...


@runtime_checkable
class SuccessorLearner(Protocol):
    """A draft session that also learns which tokens the target itself held likely in its passes.

    Attributes:
        successors: how many tokens of each row it wants to see, from 1 to 64.
    """

    successors: int

    def learn_successors(self, context: Sequence[int], draft: Draft, best: BestTokens) -> None:
        """Learn from a pass; told after every round but those in which all drafters rest, before `observe`.

        Args:
            context: prompt and answer before the round.
            draft: what was verified, whoever proposed it.
            best: at least `successors` tokens of each row, by the target's logits before anything shapes them: row 0
                follows the context, row i + 1 draft token i and its ancestors, accepted or not. The caller's own.
        """
        ...


class StatelessSession:
    """What a `DraftSession` does besides proposing where it reads and learns at no cost."""

    def unread(self, _context: Sequence[int]) -> int:
        return 0

    def observe(self, committed: Sequence[int]) -> None:
        pass

    def close(self) -> None:
        pass


class Drafter(Protocol):
    """Lives as long as the model; opens one session per request."""

    @property
    def name(self) -> str: ...

    def open(self, shaper: Shaper, /) -> DraftSession:
        """Start drafting for a request whose tokens are chosen by `shaper`."""
        ...

    def price(self) -> Price:
        """What drafting costs, measured now."""
        ...

    def close(self) -> None:
        """Free what the drafter holds."""
        ...


@runtime_checkable
class VariedDrafter(Drafter, Protocol):
    """A drafter that drafts unlike others of its name, so that what is learnt of them says nothing of it.

    Attributes:
        variant: what tells it from them; empty for the plain one.
    """

    variant: str


@runtime_checkable
class ForgettingDrafter(Drafter, Protocol):
    """A drafter that has read a request's text once, and need not do so again for the next one that begins alike."""

    def forget_texts(self) -> None:
        """Read all of the next request's text. What was learnt of drafts, and earlier answers, are not touched."""
        ...


@runtime_checkable
class SeparatingDrafter(Drafter, Protocol):
    """A drafter that keeps something of requests for later ones, but not for those of other namespaces."""

    def open_in(self, namespace: str, shaper: Shaper, /) -> DraftSession:
        """As `open`, for a request of a namespace; `open` is for the one without a name."""
        ...


@runtime_checkable
class CachingDrafter(Drafter, Protocol):
    """A drafter that keeps keys and values, whose memory has a limit. Where it is used up it drafts nothing."""

    def limit_cache(self, limit_bytes: int | None) -> None:
        """Let them take no more than so many bytes; None lifts the limit."""
        ...

    def cache_bytes(self, tokens: int) -> int:
        """Memory that so many tokens of one request take."""
        ...


def forget_texts(drafters: Iterable[Drafter]) -> None:
    """Let those of these drafters that are `ForgettingDrafter`s read all of the next request's text."""
    for drafter in drafters:
        if isinstance(drafter, ForgettingDrafter):
            drafter.forget_texts()
