"""The acceptance rule of a request, chosen by its sampling parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from borrador.sampling.acceptance import accept_by_rejection, accept_choices
from borrador.sampling.noise import FreshNoise, Noise
from borrador.sampling.shaping import Distribution, History, Shaper
from borrador.types import Draft, Float32Array, Verdict


class AcceptanceRule(Protocol):
    """Judges drafts by the target's logits."""

    def accept(self, logits: Float32Array, draft: Draft, context: Sequence[int], /) -> Verdict:
        """Judge one draft.

        Args:
            logits: (γ + 1) x vocabulary; row 0 follows the context, row i + 1 follows draft token i.
            draft: γ tokens, none of them outside the vocabulary.
            context: prompt and answer so far. A row's own history is this and the draft's path to it.

        Raises:
            ModelError: a row that is looked at is not finite.
        """
        ...


def rule_for(shaper: Shaper) -> AcceptanceRule:
    """Greedy at temperature 0, seeded with a seed, else rejection sampling with fresh noise."""
    return ChoiceRule(shaper) if shaper.chooses else RejectionRule(shaper, FreshNoise())


class ChoiceRule:
    """The target's own choice, greedy or seeded, decides: an answer is token for token what plain decoding writes."""

    def __init__(self, shaper: Shaper) -> None:
        self._shaper = shaper

    def accept(self, logits: Float32Array, draft: Draft, context: Sequence[int], /) -> Verdict:
        def choose(row: int) -> int:
            return self._shaper.choice(logits[row], History(context, draft.path_to(row)))

        return accept_choices(draft.tokens, draft.parents, choose)


class RejectionRule:
    """Answers follow the target's distribution exactly, with a fresh draw each time."""

    def __init__(self, shaper: Shaper, noise: Noise) -> None:
        self._shaper = shaper
        self._noise = noise

    def accept(self, logits: Float32Array, draft: Draft, context: Sequence[int], /) -> Verdict:
        def law(row: int) -> Distribution:
            return self._shaper.law(logits[row], History(context, draft.path_to(row)))

        return accept_by_rejection(draft.tokens, draft.q, law, self._noise, parents=draft.parents)
