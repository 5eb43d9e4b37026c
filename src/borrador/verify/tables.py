"""Real next-token logits, read once per prefix, so that a draw of several tokens needs no pass of the model."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

import numpy as np

from borrador.models.prefix import prefill
from borrador.models.scripted import ScriptedModel
from borrador.models.target import Model, Rows
from borrador.types import Float32Array, Int32Array

Prefix = tuple[int, ...]
Logits = Mapping[Prefix, Float32Array]


class LogitSource(Protocol):
    """Gives logits after real texts."""

    def read_last(self, tokens: Sequence[int], count: int) -> Sequence[Float32Array]:
        """The logits after each of the last tokens of a text, at most `count` of them."""
        ...

    def read(self, context: Sequence[int], prefixes: Collection[Prefix]) -> Logits:
        """The logits after a text and each of these prefixes, which hold all beginnings of their members, () too."""
        ...


class ModelSource:
    """Reads a model.

    Args:
        model: target or draft model.
        context_length: the most tokens of texts and prefixes together.
        vocabulary_size: of the target; what a draft model has beyond it is cut off.
    """

    def __init__(self, model: Model, context_length: int, vocabulary_size: int) -> None:
        self._target = model.open(context_length)
        self._vocabulary_size = vocabulary_size

    def read_last(self, tokens: Sequence[int], count: int) -> Sequence[Float32Array]:
        rest = self._prefill(tokens)
        logits = self._target.forward(Rows.chain(rest, logits_from=max(0, len(rest) - count)))
        return [np.array(row[: self._vocabulary_size]) for row in logits]

    def read(self, context: Sequence[int], prefixes: Collection[Prefix]) -> Logits:
        """All prefixes are one tree below the context's last token."""
        rest = self._prefill(context)[:-1]
        if rest:
            self._target.forward(Rows.chain(rest, logits_from=len(rest)))
            self._target.commit(range(len(rest)))
        ordered = sorted(prefixes, key=len)
        row_of = {prefix: row for row, prefix in enumerate(ordered)}
        tokens = [prefix[-1] if prefix else context[-1] for prefix in ordered]
        parents = [row_of[prefix[:-1]] if prefix else -1 for prefix in ordered]
        logits = self._target.forward(Rows(np.array(tokens, np.int32), np.array(parents, np.int32)))
        return {prefix: np.array(logits[row, : self._vocabulary_size]) for prefix, row in row_of.items()}

    def _prefill(self, tokens: Sequence[int]) -> Sequence[int]:
        """The end of the text, which is not in the cache yet."""
        self._target.rewind(0)
        prefill(self._target, tokens)
        return tokens[self._target.length :]


class DisturbedSource:
    """Another source's logits, disturbed: as of a draft model that is often right, where there is none."""

    def __init__(self, source: LogitSource) -> None:
        self._source = source

    def read_last(self, tokens: Sequence[int], count: int) -> Sequence[Float32Array]:
        return [disturb(row, (index,)) for index, row in enumerate(self._source.read_last(tokens, count))]

    def read(self, context: Sequence[int], prefixes: Collection[Prefix]) -> Logits:
        return {prefix: disturb(row, prefix) for prefix, row in self._source.read(context, prefixes).items()}


def disturb(row: Float32Array, key: Prefix) -> Float32Array:
    """The row with standard normal noise added, the same for equal keys."""
    digest = hashlib.blake2b(repr(key).encode(), digest_size=8).digest()
    return row + np.random.default_rng(int.from_bytes(digest, "little")).standard_normal(len(row), np.float32)


class TableModel(ScriptedModel):
    """A model whose logits stand in a table. Its sequences begin with one token that says nothing.

    Args:
        rows: logits by prefix, without that token.
    """

    def __init__(self, rows: Logits) -> None:
        super().__init__(len(rows[()]))
        self.rows = rows

    def logits_after(self, prefix: Sequence[int]) -> Float32Array:
        return self.rows[tuple(prefix[1:])]


def shrink(tables: Sequence[Logits], keep: int) -> tuple[list[Logits], Int32Array]:
    """The same tables over those tokens alone that are among the `keep` likeliest in any row, renumbered.

    Laws that keep no more tokens of a row stay as they are. Every token of a prefix must be among them.

    Returns:
        The tables, and the ascending ids that the new numbers stand for.
    """
    rows = [row for table in tables for row in table.values()]
    kept = min(keep, len(rows[0]))
    ids = np.unique([np.argpartition(row, -kept)[-kept:] for row in rows]).astype(np.int32)
    number = {token: index for index, token in enumerate(ids.tolist())}
    return [
        {tuple(number[token] for token in prefix): row[ids] for prefix, row in table.items()} for table in tables
    ], ids
