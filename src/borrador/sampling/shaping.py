"""From logits to a choice or a distribution: the one place where temperature, top-k, top-p and min-p act.

They act in the order of llama.cpp's default chain: top-k, top-p and min-p on the probabilities at temperature 1, then
the temperature. Every row is shaped alike, whether it belongs to the target or to a draft model, and by the tokens
before that very row. Ties go to the lowest token id.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from borrador import _native
from borrador.errors import ModelError
from borrador.models.target import BestTokens
from borrador.types import Float32Array, Int32Array, SamplingParams, UInt32Array


@dataclass(frozen=True, slots=True)
class History:
    """The tokens before a row, without copying them.

    Attributes:
        context: prompt and answer so far.
        path: the draft tokens between the context and the row.
    """

    context: Sequence[int] = ()
    path: Sequence[int] = ()

    @property
    def position(self) -> int:
        """How many tokens come before the row: the position of the token chosen there."""
        return len(self.context) + len(self.path)


class RowMasks(Protocol):
    """Says which tokens may stand where, as a grammar does."""

    def mask(self, history: History, /) -> UInt32Array | None:
        """The tokens that may follow, or None where all may.

        Asked for the rows of a draft from the context outwards, a parent before its children, and only for those that
        are looked at.

        Returns:
            One bit per token, 1 where it is allowed, the lowest bit of the first word for token 0: at least
            vocabulary / 32 words, rounded up. Read before the next call. One token must be allowed.
        """
        ...


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


class Shaper:
    """What one request makes of a row's logits: a distribution, or a choice.

    The target's rows and a draft model's go through the same one, so that a draft is drawn as the target draws.

    Args:
        params: of the request.
        masks: which tokens may stand where; None allows all everywhere.

    All methods raise ModelError where no logit of a row is finite, or one is infinite.
    """

    def __init__(self, params: SamplingParams, *, masks: RowMasks | None = None) -> None:
        self.params = params
        self._masks = masks
        self._shape = _native.Shape(
            temperature=params.temperature, top_k=params.top_k, top_p=params.top_p, min_p=params.min_p
        )

    @property
    def chooses(self) -> bool:
        """True where rows and parameters alone decide which token comes next: greedily, or by seeded noise."""
        return self.params.greedy or self.params.seed is not None

    @property
    def takes_best(self) -> bool:
        """True where the token that follows is the most likely one of the row, as the model gives it, whatever came
        before: nothing more of a row is needed, see `Target.best`."""
        return self.params.greedy and self._masks is None

    def choice(self, logits: Float32Array, history: History) -> int:
        """The token that follows: the most likely one at temperature 0, else a draw that depends on seed, position and
        shaped distribution alone (argmax of log probability plus the position's Gumbel noise).

        Args:
            logits: one row.
            history: the tokens before it.
        """
        row, seed = self._allowed(logits, history), self.params.seed
        if self.params.greedy:
            return most_likely(row)
        if seed is None:
            raise ValueError("without a seed there is no choice, only a distribution")
        try:
            return _native.pick_seeded(row, self._shape, seed, history.position)
        except ValueError as error:
            raise _not_finite() from error

    def law(self, logits: Float32Array, history: History) -> Distribution:
        """The distribution of the token that follows, at a temperature above 0. Arguments as for `choice`."""
        try:
            ids, probabilities = _native.shape(self._allowed(logits, history), self._shape)
        except ValueError as error:
            raise _not_finite() from error
        return Distribution(ids if len(ids) else None, probabilities)

    def _allowed(self, logits: Float32Array, history: History) -> Float32Array:
        mask = None if self._masks is None else self._masks.mask(history)
        if mask is None:
            return logits
        bits = np.unpackbits(mask.view(np.uint8), bitorder="little", count=len(logits))
        return np.where(bits, logits, np.float32(-np.inf))


def most_likely(logits: Float32Array) -> int:
    """The token with the largest of a row's logits.

    Raises:
        ModelError: no logit is finite, or one is infinite.
    """
    try:
        return int(_native.argmax(logits[np.newaxis])[0])
    except ValueError as error:
        raise _not_finite() from error


def first_of(best: BestTokens, row: int) -> int:
    """The most likely token of a row whose best tokens are known. Errors as for `most_likely`."""
    token = int(best.ids[row, 0])
    if token < 0:
        raise _not_finite()
    return token


def probability_of_first(best: BestTokens, row: int) -> float:
    """The probability at temperature 1 of a row's most likely token, where normalisers are known."""
    return min(1.0, math.exp(best.logits[row, 0] - best.normalisers[row]))


def probability(logits: Float32Array, token: int) -> float:
    """A token's probability at temperature 1, nothing dropped; NaN where a logit is."""
    largest = logits.max()
    return float(np.exp(logits[token] - largest) / np.exp(logits - largest).sum())


def _not_finite() -> ModelError:
    return ModelError(
        "the model computed logits that are not finite numbers", "Its file may be damaged; fetch it again."
    )
