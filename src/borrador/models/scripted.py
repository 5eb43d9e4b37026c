"""A target for tests: its logits are a fixed function of the tokens before them, and misuse is an error."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from weakref import WeakSet

import numpy as np

from borrador.errors import ContextLengthError, MemoryLimitError
from borrador.models.target import Batch, BestTokens, CacheUsage, Rows, Shortlist, Target
from borrador.types import Float32Array


class ScriptedModel:
    """Weights for `ScriptedTarget`: equal seeds give equal logits. Each token that a sequence holds takes a byte.

    Args:
        vocabulary_size: tokens it knows.
        seed: which function of the prefix it computes.
        memory: how many of the last tokens the logits depend on; None is all of them.
        sharpness: standard deviation of the logits.
        script: tokens that follow an empty prefix with certainty, for answers known in advance.

    Attributes:
        batches: of every pass over several sequences so far, how many they were.
        sequences: that are open on it.
    """

    def __init__(
        self,
        vocabulary_size: int = 16,
        *,
        seed: int = 0,
        memory: int | None = None,
        sharpness: float = 2.0,
        script: Sequence[int] = (),
    ) -> None:
        self.vocabulary_size = vocabulary_size
        self.script = tuple(script)
        self.closed = False
        self.batches: list[int] = []
        self.sequences: WeakSet[ScriptedTarget] = WeakSet()
        self._limit_bytes: int | None = None
        self._seed = seed
        self._memory = memory
        self._sharpness = sharpness
        self._known: dict[tuple[int, ...], Float32Array] = {}

    def open(self, context_length: int) -> ScriptedTarget:
        return ScriptedTarget(self, context_length)

    def limit_cache(self, limit_bytes: int | None) -> None:
        self._limit_bytes = limit_bytes

    def cache_usage(self) -> CacheUsage:
        return CacheUsage(sum(sequence.held for sequence in self.sequences), self._limit_bytes)

    def cache_bytes(self, tokens: int) -> int:
        return tokens

    def require_room(self, batch: Batch) -> None:
        """Refuse a pass over these rows where they do not fit into the memory of the cache."""
        passing = {id(sequence) for sequence, _ in batch}
        held = sum(sequence.held for sequence in self.sequences if id(sequence) not in passing)
        needed = held + sum(sequence.length + len(rows.tokens) for sequence, rows in batch)
        if self._limit_bytes is not None and needed > self._limit_bytes:
            raise MemoryLimitError(f"the cache may take {self._limit_bytes} bytes, and {needed} are needed", "Wait.")

    def shortlist(self, tokens: Sequence[int], room: int = 0) -> ScriptedShortlist:
        return ScriptedShortlist(tokens, min(len(tokens) + room, self.vocabulary_size))

    def close(self) -> None:
        self.closed = True

    def forward(self, batch: Batch) -> list[Float32Array]:
        self._begin_pass(batch)
        return [sequence.forward(rows) for sequence, rows in batch]

    def best(
        self, batch: Batch, count: int, *, within: int | None = None, normalised: bool = False
    ) -> list[BestTokens]:
        self._begin_pass(batch)
        return [sequence.best(rows, count, within=within, normalised=normalised) for sequence, rows in batch]

    def _begin_pass(self, batch: Batch) -> None:
        self.batches.append(len(batch))
        if len({id(sequence) for sequence, _ in batch}) < len(batch):
            raise RuntimeError("a sequence stands twice in a pass")
        self.require_room(batch)

    def logits_after(self, prefix: Sequence[int]) -> Float32Array:
        """The vocabulary's logits after these tokens."""
        key = tuple(prefix)
        if key not in self._known:
            self._known[key] = self._compute(key)
        return self._known[key]

    def _compute(self, prefix: tuple[int, ...]) -> Float32Array:
        if len(prefix) < len(self.script) and prefix == self.script[: len(prefix)]:
            certain = np.full(self.vocabulary_size, -50.0, np.float32)
            certain[self.script[len(prefix)]] = 50.0
            return certain
        seen = prefix if self._memory is None else prefix[max(0, len(prefix) - self._memory) :]
        digest = hashlib.blake2b(repr((self._seed, seen)).encode(), digest_size=8).digest()
        generator = np.random.default_rng(int.from_bytes(digest, "little"))
        return (generator.normal(size=self.vocabulary_size) * self._sharpness).astype(np.float32)


class ScriptedShortlist:
    """Tokens that have logits; fulfils `Shortlist`."""

    def __init__(self, tokens: Sequence[int], capacity: int) -> None:
        self.tokens: list[int] = []
        self._capacity = capacity
        self.add(tokens)

    def __len__(self) -> int:
        return len(self.tokens)

    def add(self, tokens: Sequence[int]) -> None:
        if len(self.tokens) + len(tokens) > self._capacity:
            raise RuntimeError("more tokens than there is room for")
        if len({*self.tokens, *tokens}) < len(self.tokens) + len(tokens):
            raise RuntimeError("a token twice in a shortlist")
        self.tokens.extend(tokens)


class ScriptedTarget:
    """A sequence on a `ScriptedModel` that checks the `Target` contract at every call.

    Attributes:
        tokens: the committed tokens.
        passes: the rows of every pass so far.
    """

    def __init__(self, model: ScriptedModel, context_length: int) -> None:
        self.tokens: list[int] = []
        self.passes: list[Rows] = []
        self._model = model
        self._context_length = context_length
        self._rows: Rows | None = None
        self._shortlists: tuple[ScriptedShortlist, ...] = ()
        self._logits = np.empty((0, 0), np.float32)
        model.sequences.add(self)

    @property
    def vocabulary_size(self) -> int:
        return self._model.vocabulary_size

    @property
    def context_length(self) -> int:
        return self._context_length

    @property
    def length(self) -> int:
        return len(self.tokens)

    @property
    def held(self) -> int:
        """Tokens in its cache, uncommitted rows among them."""
        return self.length + (0 if self._rows is None else len(self._rows.tokens))

    def forward(self, rows: Rows) -> Float32Array:
        if self._model.closed:
            raise RuntimeError("forward on a closed model")
        self._check(rows)
        self._rows = rows
        self.passes.append(rows)
        self._logits.fill(np.nan)  # the last pass's logits were valid until now
        logits = [self._model.logits_after(path) for path in self._paths(rows)[rows.logits_from :]]
        self._logits = np.array(logits, np.float32).reshape(len(logits), self.vocabulary_size)
        if self._shortlists:
            listed = [token for shortlist in self._shortlists for token in shortlist.tokens]
            if not listed or len(set(listed)) < len(listed):
                raise RuntimeError("shortlists must be apart, and not all empty")
            self._logits[:, np.setdiff1d(np.arange(self.vocabulary_size), listed)] = -np.inf
        return self._logits

    def best(self, rows: Rows, count: int, *, within: int | None = None, normalised: bool = False) -> BestTokens:
        if not 1 <= count <= 64 or (within is not None and within < 1):
            raise RuntimeError(f"the best {count} tokens below {within}")
        logits = self.forward(rows)[:, :within].astype(np.float64)
        logits[np.isnan(logits)] = -np.inf
        order = np.argsort(-logits, axis=1, kind="stable")[:, :count]
        found = np.take_along_axis(logits, order, axis=1)
        found[~np.isfinite(found[:, 0])] = -np.inf
        ids = np.full((len(logits), count), -1, np.int32)
        ids[:, : found.shape[1]] = np.where(np.isfinite(found), order, -1)
        best = np.full((len(logits), count), -np.inf, np.float32)
        best[:, : found.shape[1]] = found
        normalisers = np.where(np.isfinite(found[:, 0]), np.logaddexp.reduce(logits, axis=1), np.nan)
        return BestTokens(ids, best, normalisers[: len(logits) if normalised else 0].astype(np.float32))

    def narrow(self, shortlists: Sequence[Shortlist]) -> None:
        if not all(isinstance(shortlist, ScriptedShortlist) for shortlist in shortlists):
            raise RuntimeError("a shortlist of another kind of model")
        self._shortlists = tuple(one for one in shortlists if isinstance(one, ScriptedShortlist))

    def commit(self, path: Sequence[int]) -> None:
        if self._rows is None:
            raise RuntimeError("commit without a pass to commit from")
        parent = -1
        for row in path:
            if not 0 <= row < len(self._rows.tokens) or self._rows.parents[row] != parent:
                raise RuntimeError(f"row {row} does not follow row {parent}")
            parent = row
        self.tokens.extend(int(self._rows.tokens[row]) for row in path)
        self._rows = None

    def rewind(self, length: int) -> None:
        if not 0 <= length <= self.length:
            raise RuntimeError(f"rewind to {length} with {self.length} tokens committed")
        del self.tokens[length:]
        self._rows = None

    def assume(self, length: int) -> None:
        if not 0 <= length <= self.context_length:
            raise RuntimeError(f"assume {length} tokens in a context of {self.context_length}")
        self.tokens = [0] * length
        self._rows = None

    def copy_from(self, source: Target, length: int) -> None:
        if not isinstance(source, ScriptedTarget) or source is self or not 0 <= length <= source.length:
            raise RuntimeError(f"copy of {length} tokens from a sequence that does not have them")
        self.tokens[:] = source.tokens[:length]
        self._rows = None

    def _check(self, rows: Rows) -> None:
        count = len(rows.tokens)
        if count == 0 or len(rows.parents) != count or not 0 <= rows.logits_from <= count:
            raise RuntimeError("malformed rows")
        if rows.tokens.dtype != np.int32 or rows.parents.dtype != np.int32:
            raise RuntimeError("rows must be int32")
        if any(not -1 <= parent < index for index, parent in enumerate(rows.parents)):
            raise RuntimeError("a parent must come before its children")
        if any(not 0 <= token < self.vocabulary_size for token in rows.tokens):
            raise RuntimeError("a token outside the vocabulary")
        if self.length + count > self.context_length:
            raise ContextLengthError(f"{self.length} + {count} rows do not fit into {self.context_length}")
        self._model.require_room([(self, rows)])

    def _paths(self, rows: Rows) -> list[list[int]]:
        paths: list[list[int]] = []
        for token, parent in zip(rows.tokens, rows.parents, strict=True):
            before = self.tokens if parent < 0 else paths[parent]
            paths.append([*before, int(token)])
        return paths
