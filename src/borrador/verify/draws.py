"""Answers of three tokens by the rounds, drafters and rules that ship, on a table of real logits."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from borrador.draft.model import ModelDrafter
from borrador.draft.protocol import DraftSession, GoOn, StatelessSession, always
from borrador.engine.fixed_length import FixedLength
from borrador.engine.proposer import Proposer
from borrador.engine.round import RoundState, play_round
from borrador.sampling.noise import FreshNoise, Noise
from borrador.sampling.rules import AcceptanceRule
from borrador.sampling.shaping import History, Shaper
from borrador.types import Draft, Float32Array, Verdict
from borrador.verify.tables import Prefix, TableModel

TOKENS = 3  # in an answer
DEPTH = TOKENS - 1  # of drafts and tables: the third token follows two others
ROOT = 0  # what sequences on a table begin with
_ROOM = 16  # tokens of a sequence, with the largest draft

OpenSession = Callable[[], DraftSession]
MakeRule = Callable[[Shaper, Noise], AcceptanceRule[Float32Array]]


class Drafting(Protocol):
    """A way to draft on a table."""

    @property
    def budgets(self) -> Sequence[int]:
        """The most tokens to draft where 1, 2 and 3 tokens of the answer are left."""
        ...

    def on(self, table: TableModel, shaper: Shaper, noise: Noise) -> OpenSession:
        """Sessions for answers drawn with this shaper."""
        ...


class DrawnChains:
    """Chains that a draft model draws from its own distribution."""

    budgets = tuple(range(TOKENS))

    def on(self, table: TableModel, shaper: Shaper, noise: Noise) -> OpenSession:
        drafter = ModelDrafter("drawn", table, context_length=_ROOM, vocabulary_size=table.vocabulary_size)
        return lambda: drafter.open(shaper, noise)


class DrawnTrees:
    """Trees that are drawn without replacement below every token.

    Args:
        branches: children of every token.
    """

    def __init__(self, branches: int) -> None:
        self._branches = branches
        self.budgets = _tree_sizes(branches)

    def on(self, table: TableModel, shaper: Shaper, noise: Noise) -> OpenSession:
        session = _DrawnSession(table, self._branches, shaper, noise)
        return lambda: session


class CertainTokens:
    """Chains or trees of the likeliest tokens of the tables, as drafters propose them that draw nothing.

    Args:
        branches: children of every token.
    """

    def __init__(self, branches: int) -> None:
        self._branches = branches
        self.budgets = _tree_sizes(branches)

    def on(self, table: TableModel, _shaper: Shaper, _noise: Noise) -> OpenSession:
        session = _CertainSession(table, self._branches)
        return lambda: session


def _tree_sizes(branches: int) -> tuple[int, ...]:
    """Tokens of full trees of no level, one level, and so on."""
    return tuple(sum(branches**level for level in range(1, depth + 1)) for depth in range(TOKENS))


class _TreeSession(StatelessSession):
    """Proposes trees that grow from the top, as far as the tables reach."""

    def __init__(self, branches: int) -> None:
        self._branches = branches

    def _grow(self, context: Sequence[int], budget: int, children: Callable[[Prefix, int], Sequence[int]]) -> Draft:
        """A chain where there is one branch. `children` is given what comes before them, and their row of q."""
        paths: list[Prefix] = [tuple(context[1:])]
        tokens: list[int] = []
        parents: list[int] = []
        for row, path in enumerate(paths):
            if len(path) == DEPTH:
                break
            for token in children(path, row)[: budget - len(tokens)]:
                tokens.append(token)
                parents.append(row - 1)
                paths.append((*path, token))
        return Draft(tokens=tuple(tokens), parents=tuple(parents) if self._branches > 1 else None, drafter="tree")


class _CertainSession(_TreeSession):
    def __init__(self, table: TableModel, branches: int) -> None:
        super().__init__(branches)
        known: dict[Prefix, list[int]] = {prefix: [] for prefix in table.rows}
        for path in table.rows:
            if path:
                known[path[:-1]].append(path[-1])
        self._likeliest = {
            prefix: heapq.nlargest(branches, tokens, key=table.rows[prefix].__getitem__)
            for prefix, tokens in known.items()
        }

    def propose(self, context: Sequence[int], budget: int, _go_on: GoOn = always) -> Draft:
        return self._grow(context, budget, lambda prefix, _row: self._likeliest[prefix])


class _DrawnSession(_TreeSession):
    def __init__(self, table: TableModel, branches: int, shaper: Shaper, noise: Noise) -> None:
        super().__init__(branches)
        self._noise = noise
        self._laws = {prefix: np.empty(len(row), np.float32) for prefix, row in table.rows.items()}
        for prefix, row in table.rows.items():
            shaper.law(row, History()).write(self._laws[prefix])

    def propose(self, context: Sequence[int], budget: int, _go_on: GoOn = always) -> Draft:
        q = np.zeros((1 + budget, len(self._laws[()])), np.float32)

        def draw_children(prefix: Prefix, row: int) -> Sequence[int]:
            q[row] = self._laws[prefix]
            return self._without_replacement(q[row])

        draft = self._grow(context, budget, draw_children)
        return replace(draft, q=q[: 1 + len(draft.tokens)])

    def _without_replacement(self, law: Float32Array) -> Sequence[int]:
        left = law.copy()
        tokens: list[int] = []
        while len(tokens) < self._branches and left.any():
            tokens.append(self._noise.pick(left))
            left[tokens[-1]] = 0.0
        return tokens


class ResamplingRule:
    """Wrong on purpose: what stands in for a refused token is drawn from p, and not from the residual of p and q."""

    def __init__(self, rule: AcceptanceRule[Float32Array], shaper: Shaper, noise: Noise) -> None:
        self.wanted = rule.wanted
        self._rule = rule
        self._shaper = shaper
        self._noise = noise

    def accept(self, logits: Float32Array, draft: Draft, context: Sequence[int], /) -> Verdict:
        verdict = self._rule.accept(logits, draft, context)
        if verdict.bonus or not draft.tokens:
            return verdict
        row = verdict.path[-1] + 1 if verdict.path else 0
        p = self._shaper.law(logits[row], History(context, draft.path_to(row)))
        return replace(verdict, next_token=p.token(self._noise.pick(p.probabilities)))


class _ThreeTokens:
    """Ends an answer after its third token."""

    def __init__(self, budgets: Sequence[int]) -> None:
        self.left = TOKENS
        self._budgets = budgets

    def room(self) -> int:
        return 1 + self._budgets[self.left - 1]

    def take(self, tokens: Sequence[int]) -> int:
        taken = min(len(tokens), self.left)
        self.left -= taken
        return taken


def draw(
    target: TableModel,
    draft: TableModel,
    drafting: Drafting,
    shaper: Shaper,
    make_rule: MakeRule,
    draws: int,
    seed: int,
) -> Counter[Prefix]:
    """Write `draws` answers of three tokens.

    Args:
        target: tables of the target's logits.
        draft: of the drafter's logits, over the same vocabulary and prefixes.
        drafting: how drafts are made of them.
        shaper: of both.
        make_rule: makes the rule that judges drafts.
        draws: how many answers.
        seed: for a generator from which everything is drawn.

    Returns:
        How often each answer was written.
    """
    for_drafts, for_rule = (FreshNoise(generator) for generator in np.random.default_rng(seed).spawn(2))
    sequence = target.open(_ROOM)
    open_session = drafting.on(draft, shaper, for_drafts)
    plan = FixedLength(("draft",), max(drafting.budgets))
    rule = make_rule(shaper, for_rule)
    counts: Counter[Prefix] = Counter()
    for _ in range(draws):
        sequence.rewind(0)
        proposer = Proposer({"draft": open_session()}, plan, target.vocabulary_size)
        ending = _ThreeTokens(drafting.budgets)
        state = RoundState(sequence, [ROOT], proposer, rule, ending, rounds=1)  # the first round of all drafts nothing
        while ending.left:
            play_round(state)
        proposer.close()
        counts[tuple(state.context[1:])] += 1
    return counts
