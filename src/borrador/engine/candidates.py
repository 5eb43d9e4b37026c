"""Proposed tokens, and which of them a pass verifies. Pure: numbers in, choices out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from operator import itemgetter, mul
from typing import NamedTuple

from borrador.types import Draft

PassCost = Callable[[float], float]
Judge = Callable[[float, int], float]

LONGEST_DRAFT = 15
_NOWHERE = -2


class Load(NamedTuple):
    """A pass before anything is drafted for it.

    Attributes:
        rows: rows of all requests: their last tokens, and what else of them is pending.
        requests: how many of them write a token.
        context: tokens before a row, on average over these requests.
        value: of a token of the request that drafts, against an average one: in passes that several share, some
            requests' tokens save less time than others'.
    """

    rows: int = 1
    requests: int = 1
    context: float = 0.0
    value: float = 1.0


ALONE = Load()


class Proposal(NamedTuple):
    """A draft of certain tokens, and per token the probability that it is accepted if those before it are."""

    draft: Draft
    acceptance: Sequence[float]


@dataclass(slots=True)
class Candidates:
    """What was proposed to one request: a tree in which a token stands once below its parent.

    Attributes:
        tokens: proposed token ids, parents before their children.
        parents: index of each token's parent, -1 for a child of the context's last token.
        survival: the probability that a token and all before it are accepted; never more than its parent's.
        drafters: who proposed it; of several the one that is believed most.
        whole: a draft that is verified as it is, in place of all this.
        spent_s: seconds that drafting took.
        reading_s: seconds that a drafter read the context for, which it need not do again.
        hopes: the acceptance of each token, if those before it are, by the most hopeful of its drafters.
        votes: how many drafters proposed each token.
    """

    tokens: list[int] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    survival: list[float] = field(default_factory=list)
    drafters: list[str] = field(default_factory=list)
    whole: Draft | None = None
    spent_s: float = 0.0
    hopes: list[float] = field(default_factory=list)
    votes: list[int] = field(default_factory=list)
    reading_s: float = 0.0

    @classmethod
    def merge(cls, proposals: Iterable[Proposal], spent_s: float = 0.0, judge: Judge | None = None) -> Candidates:
        """One tree of all that was proposed.

        Where several proposed the same token in the same place, the most hopeful is believed, as far as the judge
        does. Siblings exclude one another: in the order of their hopes, each can have no more than the others leave.

        Args:
            proposals: from drafters each of which knows how often tokens like its own are accepted.
            spent_s: seconds that drafting took.
            judge: what the hope for a token that so many drafters proposed is worth; None believes it.
        """
        proposals = [proposal for proposal in proposals if proposal.draft.tokens]
        if len(proposals) == 1 and proposals[0].draft.parents is None:
            return cls._chain(*proposals[0], spent_s, judge)
        tree = cls(spent_s=spent_s)
        places: dict[tuple[int, int], int] = {}
        for draft, hopes in proposals:
            tree._add(draft, hopes, places)
        tree._weigh(tree._judged(judge))
        return tree

    @classmethod
    def _chain(cls, draft: Draft, hopes: Sequence[float], spent_s: float, judge: Judge | None) -> Candidates:
        """The same, for a draft without branches or company."""
        count = len(draft.tokens)
        tokens, parents, drafters = list(draft.tokens), list(range(-1, count - 1)), [draft.drafter] * count
        chain = cls(tokens, parents, [], drafters, None, spent_s, list(hopes), [1] * count)
        chain.survival = list(accumulate(chain._judged(judge), mul))
        return chain

    def _add(self, draft: Draft, hopes: Sequence[float], places: dict[tuple[int, int], int]) -> None:
        indices: list[int] = []
        for token, parent, hope in zip(draft.tokens, draft.parent_indices, hopes, strict=True):
            below = indices[parent] if parent >= 0 else -1
            index = places.setdefault((below, token), len(self.tokens))
            indices.append(index)
            if index == len(self.tokens):
                self.tokens.append(token)
                self.parents.append(below)
                self.drafters.append(draft.drafter)
                self.hopes.append(hope)
                self.votes.append(1)
            else:
                self.votes[index] += 1
                if hope > self.hopes[index]:
                    self.hopes[index], self.drafters[index] = hope, draft.drafter

    def _judged(self, judge: Judge | None) -> list[float]:
        if judge is None:
            return list(self.hopes)
        return [judge(hope, votes) for hope, votes in zip(self.hopes, self.votes, strict=True)]

    def fates(self, written: Sequence[int]) -> Iterator[tuple[int, bool]]:
        """Of the candidates that what was written decided on, verified or not: index, and whether it came true."""
        last = -1
        for token in written:
            below = [index for index, parent in enumerate(self.parents) if parent == last]
            last = next((index for index in below if self.tokens[index] == token), _NOWHERE)
            yield from ((index, index == last) for index in below)
            if last == _NOWHERE:
                return

    def _weigh(self, acceptance: list[float]) -> None:
        left = {-1: 1.0}
        self.survival = [0.0] * len(acceptance)
        for index in sorted(range(len(acceptance)), key=lambda index: (-acceptance[index], index)):
            parent = self.parents[index]
            share = min(acceptance[index], left.setdefault(parent, 1.0))
            left[parent] -= share
            acceptance[index] = share
        for index, parent in enumerate(self.parents):
            self.survival[index] = acceptance[index] * (self.survival[parent] if parent >= 0 else 1.0)

    def expected(self, draft: Draft) -> float:
        """How many tokens of a draft are expected to be accepted, of those that are among the candidates."""
        places = {
            (parent, token): index for index, (token, parent) in enumerate(zip(self.tokens, self.parents, strict=True))
        }
        indices: list[int] = []
        for token, parent in zip(draft.tokens, draft.parent_indices, strict=True):
            below = indices[parent] if parent >= 0 else -1
            indices.append(places.get((below, token), _NOWHERE))
        return sum(self.survival[index] for index in indices if index != _NOWHERE)

    def take(self, indices: Iterable[int]) -> Draft:
        """The draft of these tokens alone; a token's parent must be among them."""
        chosen = sorted(indices)
        if not chosen:
            return Draft()
        place = {old: new for new, old in enumerate(chosen)}
        place[-1] = -1
        parents = tuple(place[self.parents[index]] for index in chosen)
        is_chain = all(parent == index - 1 for index, parent in enumerate(parents))
        return Draft(
            tokens=tuple(self.tokens[index] for index in chosen),
            parents=None if is_chain else parents,
            drafter="+".join(dict.fromkeys(self.drafters[index] for index in chosen)),
        )


NOTHING = Candidates()


def best_rows(
    survivals: Sequence[Sequence[float]], pass_s: PassCost, load: Load, spent_s: float = 0.0, margin: float = 1.0
) -> list[list[int]]:
    """The rows of a pass that bring most tokens per second: (requests + sum of survival) / (T(rows) + drafting time).

    Args:
        survivals: per request those of its candidates, parents first and never below their children.
        pass_s: T(m), seconds of a pass over m rows.
        load: the pass without any of them.
        spent_s: seconds that drafting took.
        margin: the speed that rows must promise, as a multiple of the speed without any.

    Returns:
        Per request the indices to verify; with every token its parent, and at most `LONGEST_DRAFT`.
    """
    ranked = _ranked(survivals)
    best, count = margin * load.requests / (pass_s(load.rows) + spent_s), 0
    tokens = float(load.requests)
    for rows, (survival, _, _) in enumerate(ranked, 1):
        tokens += survival
        speed = tokens / (pass_s(load.rows + rows) + spent_s)
        if speed > best:
            best, count = speed, rows
    chosen: list[list[int]] = [[] for _ in survivals]
    for _, request, index in ranked[:count]:
        chosen[request].append(index)
    return chosen


def _ranked(survivals: Sequence[Sequence[float]]) -> list[tuple[float, int, int]]:
    """The most hopeful candidates, best first, as (survival, request, index)."""
    ranked: list[tuple[float, int, int]] = []
    for request, survival in enumerate(survivals):
        order = sorted(range(len(survival)), key=survival.__getitem__, reverse=True)  # stable: parents stay first
        ranked += [(survival[index], request, index) for index in order[:LONGEST_DRAFT]]
    if len(survivals) > 1:
        ranked.sort(key=itemgetter(0), reverse=True)
    return ranked


def choose(gathered: Sequence[Candidates], pass_s: PassCost | None, load: Load, margin: float = 1.0) -> list[Draft]:
    """The draft that each request verifies in the pass they share.

    Args:
        gathered: per request.
        pass_s: T(m), seconds of a pass over m rows; None where all drafts are taken whole.
        load: the pass without drafts.
        margin: as for `best_rows`.
    """
    whole = sum(len(candidates.whole.tokens) for candidates in gathered if candidates.whole is not None)
    load = load._replace(rows=load.rows + whole)
    spent_s = sum(candidates.spent_s for candidates in gathered)
    offered = [candidates.survival if candidates.whole is None else () for candidates in gathered]
    chosen = best_rows(offered, pass_s, load, spent_s, margin) if pass_s is not None else [[] for _ in gathered]
    return [
        candidates.take(indices) if candidates.whole is None else candidates.whole
        for candidates, indices in zip(gathered, chosen, strict=True)
    ]
