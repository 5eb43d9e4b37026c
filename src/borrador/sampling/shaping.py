"""From logits to a choice or a distribution: the one place where sampling parameters act.

They act in the order that `SamplingParams` gives, which is that of llama.cpp's default chain. Every row is shaped
alike, whether it belongs to the target or to a draft model, and by the tokens before that very row. Ties go to the
lowest token id.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from borrador import _native
from borrador.errors import ModelError, UsageError
from borrador.models.target import BestTokens
from borrador.sampling.history import History as History
from borrador.sampling.history import TokenWindow
from borrador.types import Float32Array, Int32Array, SamplingParams, UInt32Array

_NONE = np.empty(0, np.int32)


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

    def forced(self, history: History, limit: int, /) -> Sequence[int]:
        """The tokens, at most `limit`, that must follow whatever a model says, since each is the only one allowed."""
        ...

    def is_complete(self, history: History, /) -> bool:
        """Nothing may follow but the answer's end."""
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
        prompt_length: tokens of the context that the request began with; `min_tokens` counts from there.
        end_ids: tokens that end the request's answer.
        masks: which tokens may stand where; None allows all everywhere.

    Contexts are lists that grow, or are cut back to what they were, as long as they are the same object.

    All methods raise ModelError where no logit of a row is finite, or one is infinite, and UsageError where parameters
    and masks together leave no token.
    """

    def __init__(
        self,
        params: SamplingParams,
        *,
        prompt_length: int = 0,
        end_ids: Collection[int] = (),
        masks: RowMasks | None = None,
    ) -> None:
        self.params = params
        self._masks = masks
        self._shape = native_shape(params)
        self._window = TokenWindow(params.penalty_window)
        self._banned = np.array(params.banned_token_ids, np.int32)
        self._banned_early = np.array([*params.banned_token_ids, *end_ids], np.int32)
        self._first_end = prompt_length + params.min_tokens if params.min_tokens and end_ids else 0

    @property
    def chooses(self) -> bool:
        """True where rows and parameters alone decide which token comes next: greedily, or by seeded noise."""
        return self.params.greedy or self.params.seed is not None

    @property
    def takes_best(self) -> bool:
        """True where the token that follows is the most likely one of the row, as the model gives it, whatever came
        before: nothing more of a row is needed, see `Target.best`."""
        params = self.params
        edits = params.penalises or params.logit_bias or params.banned_token_ids or params.allowed_token_ids is not None
        plain = not edits and params.typical_p == 1.0 and self._masks is None and not self._first_end
        return params.greedy and plain

    def choice(self, logits: Float32Array, history: History) -> int:
        """The token that follows: the most likely one at temperature 0, else a draw that depends on seed, position and
        shaped distribution alone (argmax of log probability plus the position's Gumbel noise).

        Args:
            logits: one row.
            history: the tokens before it.
        """
        seed, conditions = self.params.seed, self._conditions(history)
        try:
            if self.params.greedy:
                return _native.pick_likeliest(logits, self._shape, *conditions)
            if seed is not None:
                return _native.pick_seeded(logits, self._shape, *conditions, seed, history.position)
        except ValueError as error:
            raise _nothing_to_choose(logits, history) from error
        raise TypeError("without a seed there is no choice, only a distribution")

    def law(self, logits: Float32Array, history: History) -> Distribution:
        """The distribution of the token that follows, at a temperature above 0. Arguments as for `choice`."""
        try:
            ids, probabilities = _native.shape(logits, self._shape, *self._conditions(history))
        except ValueError as error:
            raise _nothing_to_choose(logits, history) from error
        return Distribution(ids if len(ids) else None, probabilities)

    def confidence(self, logits: Float32Array, token: int, history: History) -> float:
        """A token's probability at temperature 1 among those that the masks allow; NaN where a logit is."""
        mask = None if self._masks is None else self._masks.mask(history)
        if mask is None:
            return probability(logits, token)
        allowed = np.unpackbits(mask.view(np.uint8), bitorder="little", count=len(logits))
        return float(1.0 / np.exp(logits[allowed.view(np.bool_)] - logits[token]).sum())

    def forced(self, history: History, limit: int) -> Sequence[int]:
        """As `RowMasks.forced`; none without masks."""
        return () if self._masks is None else self._masks.forced(history, limit)

    def is_complete(self, history: History) -> bool:
        """As `RowMasks.is_complete`."""
        return self._masks is not None and self._masks.is_complete(history)

    def _conditions(self, history: History) -> tuple[Int32Array, Int32Array, UInt32Array | None]:
        """What depends on the row's own history: the penalties' window, tokens that come too early, the mask."""
        window = self._window.before(history) if self.params.penalises else _NONE
        barred = self._banned_early if history.position < self._first_end else self._banned
        return window, barred, None if self._masks is None else self._masks.mask(history)


def native_shape(params: SamplingParams, isa: str = "") -> _native.Shape:
    """The parameters as the sampler takes them; `isa` forces an instruction set, which changes no result."""
    return _native.Shape(
        temperature=params.temperature,
        top_k=params.top_k,
        typical_p=params.typical_p,
        top_p=params.top_p,
        min_p=params.min_p,
        repetition=params.repetition_penalty,
        presence=params.presence_penalty,
        frequency=params.frequency_penalty,
        biased=np.array(list(params.logit_bias), np.int32),
        biases=np.array(list(params.logit_bias.values()), np.float32),
        allowed=_bits(params.allowed_token_ids),
        isa=isa,
    )


def _bits(tokens: Iterable[int] | None) -> UInt32Array:
    """One bit per token, set for these; no bits at all where there is no list."""
    if tokens is None:
        return np.empty(0, np.uint32)
    ids = np.fromiter(tokens, np.int64)
    flags = np.zeros((int(ids.max()) // 32 + 1) * 32, np.uint8)
    flags[ids] = 1
    return np.packbits(flags, bitorder="little").view("<u4").astype(np.uint32)


def first_of(best: BestTokens, row: int) -> int:
    """The most likely token of a row whose best tokens are known.

    Raises:
        ModelError: no logit is finite, or one is infinite.
    """
    token = int(best.ids[row, 0])
    if token < 0:
        raise _not_finite()
    return token


def probability_of_first(best: BestTokens, row: int) -> float:
    """The probability at temperature 1 of a row's most likely token, where normalisers are known."""
    return min(1.0, math.exp(best.logits[row, 0] - best.normalisers[row]))


def probability(logits: Float32Array, token: int) -> float:
    """A token's probability at temperature 1, nothing dropped. Errors as for `first_of`."""
    return min(1.0, math.exp(float(logits[token]) - log_total(logits)))


def log_total(logits: Float32Array) -> float:
    """ln(sum of e^logit): a token's log probability at temperature 1 is its logit less this. Errors as for
    `first_of`."""
    try:
        return _native.log_total(logits)
    except ValueError as error:
        raise _not_finite() from error


def _nothing_to_choose(logits: Float32Array, history: History) -> ModelError | UsageError:
    """What is wrong: the row, or that masks, allowed and banned tokens leave nothing of it."""
    if not np.isfinite(np.fmax.reduce(logits)):
        return _not_finite()
    return UsageError(
        f"one token must be left to choose, and none is at position {history.position}",
        "Allow more tokens, ban fewer, or lower min_tokens.",
    )


def _not_finite() -> ModelError:
    return ModelError(
        "the model computed logits that are not finite numbers", "Its file may be damaged; fetch it again."
    )
