"""A model that remembers the logits from which every committed token was chosen."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from borrador.errors import ModelError
from borrador.models.passes import Evidence
from borrador.models.target import Batch, BestTokens, CacheUsage, Model, Rows, Target
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

    def limit_cache(self, limit_bytes: int | None) -> None:
        self._model.limit_cache(limit_bytes)

    def cache_usage(self) -> CacheUsage:
        return self._model.cache_usage()

    def cache_bytes(self, tokens: int) -> int:
        return self._model.cache_bytes(tokens)

    def forward(self, batch: Batch) -> Sequence[Float32Array]:
        found = self._model.forward(_unwatched(batch))
        _note(batch, found)
        return found

    def best(
        self, batch: Batch, count: int, *, within: int | None = None, normalised: bool = False
    ) -> Sequence[BestTokens]:
        found = self._model.best(_unwatched(batch), count, within=within, normalised=normalised)
        _note(batch, found)
        return found

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
        self.watched = target
        self._seen = seen
        self._rows = Rows.chain(())
        self._pass: Evidence = np.empty((0, 0), np.float32)

    @property
    def vocabulary_size(self) -> int:
        return self.watched.vocabulary_size

    @property
    def context_length(self) -> int:
        return self.watched.context_length

    @property
    def length(self) -> int:
        return self.watched.length

    def forward(self, rows: Rows) -> Float32Array:
        logits = self.watched.forward(rows)
        self.note(rows, logits)
        return logits

    def best(self, rows: Rows, count: int, *, within: int | None = None, normalised: bool = False) -> BestTokens:
        best = self.watched.best(rows, count, within=within, normalised=normalised)
        self.note(rows, best)
        return best

    def note(self, rows: Rows, found: Evidence) -> None:
        """Remember what the last pass found for its rows."""
        self._rows, self._pass = rows, found

    def commit(self, path: Sequence[int]) -> None:
        for position, row in enumerate(path, self.length + 1):
            if row >= self._rows.logits_from:
                self._seen[position] = _row(self._pass, row - self._rows.logits_from)
        self.watched.commit(path)

    def rewind(self, length: int) -> None:
        self.watched.rewind(length)

    def copy_from(self, source: Target, length: int) -> None:
        self.watched.copy_from(_own(source).watched, length)

    def assume(self, length: int) -> None:
        self.watched.assume(length)


def _own(sequence: Target) -> _WatchedTarget:
    if not isinstance(sequence, _WatchedTarget):
        raise ModelError("only sequences of this model can be watched", "Open them on it.")
    return sequence


def _unwatched(batch: Batch) -> Batch:
    return [(_own(sequence).watched, rows) for sequence, rows in batch]


def _note(batch: Batch, found: Sequence[Evidence]) -> None:
    for (sequence, rows), evidence in zip(batch, found, strict=True):
        _own(sequence).note(rows, evidence)


def _row(evaluated: Evidence, index: int) -> _Seen:
    """A copy: the next pass overwrites logits. Of the best tokens the first counts: more are for drafters."""
    if isinstance(evaluated, BestTokens):
        return _Seen(np.array(evaluated.ids[index, :1]), np.array(evaluated.logits[index, :1]))
    return _Seen(None, np.array(evaluated[index]))
