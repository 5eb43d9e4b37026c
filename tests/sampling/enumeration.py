"""The exact law of what speculative decoding writes, found by walking through every decision left to chance.

A round is a function of the context and of `Chance`; it draws the draft and judges it. All is in double, so that an
exact rule differs from the target's law by rounding alone, and a wrong one by its mistake.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import cast

import numpy as np

from borrador.sampling.acceptance import LawOfRow, accept_by_block, accept_by_rejection, accept_choices
from borrador.sampling.noise import Noise
from borrador.sampling.shaping import Distribution
from borrador.types import Float32Array, Float64Array, Verdict

VOCABULARY = 3
EXACT = 1e-12

Context = tuple[int, ...]
Law = Callable[[Context], Float64Array]
Outcomes = dict[tuple[int, ...], float]


class Chance:
    """Noise that takes given decisions, and the first possible one where none is given.

    Attributes:
        taken: what was decided.
        others: per decision, the possible ones behind the one taken.
        probability: of all this.
    """

    def __init__(self, decisions: Sequence[int] = ()) -> None:
        self.taken: list[int] = []
        self.others: list[list[int]] = []
        self.probability = 1.0
        self._decisions = decisions

    def decide(self, weights: Sequence[float]) -> int:
        place = len(self.taken)
        possible = [option for option, weight in enumerate(weights) if weight > 0.0]
        choice = self._decisions[place] if place < len(self._decisions) else possible[0]
        self.taken.append(choice)
        self.others.append([option for option in possible if option > choice])
        self.probability *= weights[choice] / sum(weights)
        return choice

    def accepts(self, probability: float) -> bool:
        certain = min(1.0, probability)
        return self.decide([certain, 1.0 - certain]) == 0

    def pick(self, weights: Float32Array) -> int:
        return self.decide(weights.tolist())


Round = Callable[[Context, Chance], tuple[int, ...]]
Judge = Callable[[Sequence[int], Float64Array, LawOfRow, Noise], Verdict]


def outcomes_of(play: Callable[[Chance], tuple[int, ...]]) -> Outcomes:
    """What `play` gives with which probability, over all decisions."""
    outcomes: Outcomes = defaultdict(float)
    pending: list[list[int]] = [[]]
    while pending:
        decisions = pending.pop()
        chance = Chance(decisions)
        outcomes[play(chance)] += chance.probability
        for place in range(len(decisions), len(chance.taken)):
            pending.extend([*chance.taken[:place], other] for other in chance.others[place])
    return outcomes


def written_law(play_round: Round, length: int) -> Outcomes:
    """The law of the first `length` tokens that rounds write, one round after another."""
    written: Outcomes = defaultdict(float)
    pending: Outcomes = defaultdict(float, {(): 1.0})
    while pending:
        context, weight = pending.popitem()
        for tokens, probability in outcomes_of(partial(play_round, context)).items():
            longer = context + tokens
            ended = len(longer) >= length
            (written if ended else pending)[longer[:length]] += weight * probability
    return written


def plain_law(p: Law, length: int) -> Outcomes:
    """The law of the first `length` tokens that the target writes alone."""
    return {
        tokens: float(np.prod([p(tokens[:index])[token] for index, token in enumerate(tokens)]))
        for tokens in itertools.product(range(VOCABULARY), repeat=length)
    }


def distance(first: Outcomes, second: Outcomes) -> float:
    """Total variation."""
    return sum(abs(first.get(key, 0.0) - second.get(key, 0.0)) for key in first.keys() | second.keys()) / 2


def error(play_round: Round, p: Law, length: int) -> float:
    """How far what rounds write is from the target's law."""
    return distance(written_law(play_round, length), plain_law(p, length))


def random_law(seed: int, sharpness: float = 1.0) -> Law:
    """A law that depends on the whole context."""

    @cache
    def law(context: Context) -> Float64Array:
        weights = np.exp(np.random.default_rng((seed, 99, *context)).normal(size=VOCABULARY) * sharpness)
        return np.asarray(weights / weights.sum())

    return law


def truncated(law: Law, smallest: float) -> Law:
    """A law without tokens less likely than `smallest`, normalised."""

    def kept(context: Context) -> Float64Array:
        weights = np.where(law(context) < smallest, 0.0, law(context))
        return np.asarray(weights / weights.sum())

    return kept


def distribution(law: Float64Array, *, sparse: bool = False) -> Distribution:
    """A law as the rules take it, in double."""
    probabilities = cast("Float32Array", law)
    if not sparse:
        return Distribution(None, probabilities)
    ids = np.flatnonzero(law).astype(np.int32)
    return Distribution(ids, probabilities[ids])


def chain_round(
    judge: Judge, p: Law, q: Law, gamma: int, *, drawn_from: Law | None = None, sparse: bool = False
) -> Round:
    """A round with a chain of γ tokens drawn from q.

    Args:
        drawn_from: the law that tokens are really drawn from, where q is recorded and is another.
        sparse: give p with its ids.
    """

    def play(context: Context, chance: Chance) -> tuple[int, ...]:
        draft: tuple[int, ...] = ()
        for _ in range(gamma):
            draft += (chance.decide((drawn_from or q)(context + draft).tolist()),)
        laws = np.stack([q(context + draft[:index]) for index in range(gamma)])
        verdict = judge(draft, laws, lambda row: distribution(p(context + draft[:row]), sparse=sparse), chance)
        return written(draft, verdict)

    return play


def written(draft: Sequence[int], verdict: Verdict) -> tuple[int, ...]:
    return (*(draft[index] for index in verdict.path), verdict.next_token)


def by_rejection(tokens: Sequence[int], q: Float64Array, p: LawOfRow, noise: Noise) -> Verdict:
    return accept_by_rejection(tokens, cast("Float32Array", q), p, noise)


def by_block(tokens: Sequence[int], q: Float64Array, p: LawOfRow, noise: Noise) -> Verdict:
    return accept_by_block(tokens, cast("Float32Array", q), p, noise)


def as_certain(tokens: Sequence[int], q: Float64Array, p: LawOfRow, noise: Noise) -> Verdict:
    return accept_by_rejection(tokens, None, p, noise)


def by_choice(tokens: Sequence[int], q: Float64Array, p: LawOfRow, noise: Noise) -> Verdict:
    """The target draws from its own law, without a look at the draft."""
    return accept_choices(tokens, None, lambda row: p(row).token(noise.pick(p(row).probabilities)))


def tree_round(
    p: Law,
    q: Law,
    parents: Sequence[int],
    *,
    replaced: bool = False,
    certain: bool = False,
    sparse: bool = False,
    lenience: float = 1.0,
) -> Round:
    """A round with a tree whose siblings are drawn from q, each without those before it.

    Args:
        replaced: draw siblings with replacement instead.
        certain: do not tell the rule what they were drawn from.
        sparse: give p with its ids.
    """

    def play(context: Context, chance: Chance) -> tuple[int, ...]:
        tokens: list[int] = []
        before: list[Context] = [context]  # row by row, the tokens before it
        laws = np.full((len(parents), VOCABULARY), np.nan)
        for parent in parents:
            laws[parent + 1] = q(before[parent + 1])
            weights = laws[parent + 1].copy()
            if not replaced:
                weights[[token for token, above in zip(tokens, parents, strict=False) if above == parent]] = 0.0
            tokens.append(chance.decide(weights.tolist()))
            before.append((*before[parent + 1], tokens[-1]))
        verdict = accept_by_rejection(
            tokens,
            None if certain else cast("Float32Array", laws),
            lambda row: distribution(p(before[row]), sparse=sparse),
            chance,
            parents=parents,
            lenience=lenience,
        )
        return written(tokens, verdict)

    return play
