"""From logits to a choice or a distribution: the one place where temperature, top-k, top-p and min-p act.

They act in the order of llama.cpp's default chain: top-k, top-p and min-p on the probabilities at temperature 1, then
the temperature. Every row is shaped alike, whether it belongs to the target or to a draft model. Ties go to the lowest
token id.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from borrador import _native
from borrador.errors import ModelError
from borrador.types import Float32Array, Int32Array, SamplingParams


class Distribution(NamedTuple):
    """Probabilities of some tokens; every other token has probability 0.

    Attributes:
        ids: ascending token ids, or None for the whole vocabulary in order.
        probabilities: one per id, summing to 1 up to float32 rounding.
    """

    ids: Int32Array | None
    probabilities: Float32Array

    def probability(self, token: int) -> float:
        if self.ids is None:
            return float(self.probabilities[token])
        index = int(np.searchsorted(self.ids, token))
        found = index < len(self.ids) and self.ids[index] == token
        return float(self.probabilities[index]) if found else 0.0

    def write(self, out: Float32Array) -> None:
        """Fill `out`, one probability per token of a vocabulary that holds all ids; it may be larger."""
        out[len(self.probabilities) if self.ids is None else 0 :] = 0.0
        out[slice(len(self.probabilities)) if self.ids is None else self.ids] = self.probabilities

    def token(self, index: int) -> int:
        """The token id at an index of `probabilities`."""
        return index if self.ids is None else int(self.ids[index])


def most_likely(logits: Float32Array) -> int:
    """The token with the largest of a row's logits.

    Raises:
        ModelError: no logit is finite, or one is infinite.
    """
    try:
        return int(_native.argmax(logits[np.newaxis])[0])
    except ValueError as error:
        raise _not_finite() from error


def probability(logits: Float32Array, token: int) -> float:
    """A token's probability at temperature 1, nothing dropped; NaN where a logit is."""
    largest = logits.max()
    return float(np.exp(logits[token] - largest) / np.exp(logits - largest).sum())


def shape(logits: Float32Array, params: SamplingParams) -> Distribution:
    """The distribution that `params` (not greedy) make of a row's logits.

    Raises:
        ModelError: no logit is finite, or one is infinite.
    """
    try:
        ids, probabilities = _native.shape(logits, _shape_of(params))
    except ValueError as error:
        raise _not_finite() from error
    return Distribution(ids if len(ids) else None, probabilities)


def seeded_choice(logits: Float32Array, params: SamplingParams, position: int) -> int:
    """The token at `position` under `params.seed`: argmax of shaped log probability plus the position's Gumbel noise.

    Args:
        logits: one row.
        params: not greedy, with a seed.
        position: how many tokens come before the chosen one, prompt included.

    Raises:
        ModelError: no logit is finite, or one is infinite.
    """
    assert params.seed is not None
    try:
        return _native.pick_seeded(logits, _shape_of(params), params.seed, position)
    except ValueError as error:
        raise _not_finite() from error


def _shape_of(params: SamplingParams) -> _native.Shape:
    return _native.Shape(temperature=params.temperature, top_k=params.top_k, top_p=params.top_p, min_p=params.min_p)


def _not_finite() -> ModelError:
    return ModelError(
        "the model computed logits that are not finite numbers", "Its file may be damaged; fetch it again."
    )
