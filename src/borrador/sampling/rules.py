"""The acceptance rule of a request, chosen by its sampling parameters."""

from __future__ import annotations

from typing import Protocol

from borrador.sampling.acceptance import accept_by_rejection, accept_choices
from borrador.sampling.noise import FreshNoise, Noise
from borrador.sampling.shaping import Distribution, most_likely, seeded_choice, shape
from borrador.types import Draft, Float32Array, SamplingParams, Verdict


class AcceptanceRule(Protocol):
    """Judges drafts by the target's logits."""

    def accept(self, logits: Float32Array, draft: Draft, position: int, /) -> Verdict:
        """Judge one draft.

        Args:
            logits: (γ + 1) x vocabulary; row 0 follows the context, row i + 1 follows draft token i.
            draft: γ tokens, none of them outside the vocabulary.
            position: tokens in the context.

        Raises:
            ModelError: a row that is looked at is not finite.
        """
        ...


def rule_for(params: SamplingParams) -> AcceptanceRule:
    """Greedy at temperature 0, seeded with a seed, else rejection sampling with fresh noise."""
    if params.greedy:
        return GreedyRule()
    return RejectionRule(params, FreshNoise()) if params.seed is None else SeededRule(params)


class GreedyRule:
    """The target's choice is its most likely token."""

    def accept(self, logits: Float32Array, draft: Draft, _position: int, /) -> Verdict:
        return accept_choices(draft.tokens, draft.parents, lambda row, _depth: most_likely(logits[row]))


class SeededRule:
    """The target's choice is its seeded draw, which depends on seed, position and logits alone."""

    def __init__(self, params: SamplingParams) -> None:
        self._params = params

    def accept(self, logits: Float32Array, draft: Draft, position: int, /) -> Verdict:
        def choose(row: int, depth: int) -> int:
            return seeded_choice(logits[row], self._params, position + depth)

        return accept_choices(draft.tokens, draft.parents, choose)


class RejectionRule:
    """Answers follow the target's distribution exactly, with a fresh draw each time.

    A draft that was not drawn at random is judged by drawing from the target and comparing: for a certain token that is
    rejection sampling itself (acceptance p(x), residual p without x), and it holds for trees as well.
    """

    def __init__(self, params: SamplingParams, noise: Noise) -> None:
        self._params = params
        self._noise = noise

    def accept(self, logits: Float32Array, draft: Draft, _position: int, /) -> Verdict:
        def law(row: int) -> Distribution:
            return shape(logits[row], self._params)

        if draft.q is not None:
            if draft.parents is not None:
                raise ValueError("a tree of drawn tokens has no acceptance rule")
            return accept_by_rejection(draft.tokens, draft.q, law, self._noise)

        def choose(row: int, _depth: int) -> int:
            p = law(row)
            return p.token(self._noise.pick(p.probabilities))

        return accept_choices(draft.tokens, draft.parents, choose)
