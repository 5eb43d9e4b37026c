"""A model that remembers the logits from which every committed token was chosen."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from borrador.models.target import BestTokens, Model, Rows, Target
from borrador.types import Float32Array, Int32Array


class Choice(NamedTuple):
    """A token of an answer, its logit, and a digest of all logits it was chosen from: equal digests, equal bits.

    The logit is not a number where none was computed for the token.
    """

    token: int
    logit: float
    logits: bytes


class _Seen(NamedTuple):
    """Logits of one row: of all tokens, or of those that the target was asked for."""

    ids: Int32Array | None
    logits: Float32Array

    def choice(self, token: int) -> Choice:
        digest = hashlib.blake2b(self.logits.tobytes(), digest_size=8)
        digest.update(b"" if self.ids is None else self.ids.tobytes())
        return Choice(token, self._logit(token), digest.digest())

    def likeliest(self, tokens: Collection[int]) -> int:
        return max(tokens, key=lambda token: (not math.isnan(logit := self._logit(token)), logit))

    def _logit(self, token: int) -> float:
        if self.ids is None:
            return float(self.logits[token])
        return next((float(logit) for i, logit in zip(self.ids, self.logits, strict=True) if i == token), math.nan)


class WatchedModel:
    """Opens sequences on a model and watches the last of them. Closing it is left to the model's owner."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._seen: dict[int, _Seen] = {}

    def open(self, context_length: int) -> Target:
        return _WatchedTarget(self._model.open(context_length), self._seen)

    def close(self) -> None:
        pass

    def choices(self, start: int, tokens: Sequence[int], end_ids: Collection[int] = ()) -> tuple[Choice, ...]:
        """What the answer that was just written was chosen from, which is then forgotten.

        Args:
            start: tokens in the prompt.
            tokens: of the answer.
            end_ids: the likeliest of these counts as the last choice, for an answer that ended with one of them.
        """
        chosen = list(tokens)
        last = self._seen.get(start + len(tokens))
        if last is not None and end_ids:
            chosen.append(last.likeliest(end_ids))
        nothing = _Seen(np.empty(0, np.int32), np.empty(0, np.float32))
        choices = tuple(self._seen.get(start + i, nothing).choice(token) for i, token in enumerate(chosen))
        self._seen.clear()
        return choices


class _WatchedTarget:
    def __init__(self, target: Target, seen: dict[int, _Seen]) -> None:
        self._target = target
        self._seen = seen
        self._rows = Rows.chain(())
        self._pass: Float32Array | BestTokens = np.empty((0, 0), np.float32)

    @property
    def vocabulary_size(self) -> int:
        return self._target.vocabulary_size

    @property
    def context_length(self) -> int:
        return self._target.context_length

    @property
    def length(self) -> int:
        return self._target.length

    def forward(self, rows: Rows) -> Float32Array:
        logits = self._target.forward(rows)
        self._rows, self._pass = rows, logits
        return logits

    def best(self, rows: Rows, count: int, *, within: int | None = None, normalised: bool = False) -> BestTokens:
        best = self._target.best(rows, count, within=within, normalised=normalised)
        self._rows, self._pass = rows, best
        return best

    def commit(self, path: Sequence[int]) -> None:
        for position, row in enumerate(path, self.length + 1):
            if row >= self._rows.logits_from:
                self._seen[position] = _row(self._pass, row - self._rows.logits_from)
        self._target.commit(path)

    def rewind(self, length: int) -> None:
        self._target.rewind(length)

    def assume(self, length: int) -> None:
        self._target.assume(length)


def _row(evaluated: Float32Array | BestTokens, index: int) -> _Seen:
    """A copy: the next pass overwrites logits."""
    if isinstance(evaluated, BestTokens):
        return _Seen(np.array(evaluated.ids[index]), np.array(evaluated.logits[index]))
    return _Seen(None, np.array(evaluated[index]))
