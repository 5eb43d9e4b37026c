"""The contract between the round and whatever evaluates the target model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from borrador.types import Float32Array, Int32Array

Number = TypeVar("Number", bound=np.generic)

# Made once: after a pass over all weights nothing is in the processor's caches, and every call into NumPy counts.
_CHAIN = np.arange(-1, 63, dtype=np.int32)
_CHAIN.flags.writeable = False


@dataclass(frozen=True, slots=True)
class Rows:
    """Token positions to evaluate in one pass over one sequence.

    Row i follows row `parents[i]` of the same pass, or the sequence's last committed token where that is -1;
    its position is its parent's plus one. A parent comes before its children.

    Attributes:
        tokens: m token ids.
        parents: m parent indices.
        logits_from: rows from this index on need logits; those before it only fill the cache.
    """

    tokens: Int32Array
    parents: Int32Array
    logits_from: int = 0

    @classmethod
    def chain(cls, tokens: Sequence[int], logits_from: int = 0) -> Rows:
        """Rows that follow one another after the sequence's last committed token."""
        count = len(tokens)
        parents = _CHAIN[:count] if count <= len(_CHAIN) else np.arange(-1, count - 1, dtype=np.int32)
        return cls(np.array(tokens, np.int32), parents, logits_from)


@dataclass(frozen=True, slots=True)
class BestTokens:
    """The most likely tokens of m rows, in place of their logits. Ties go to the lowest id.

    Attributes:
        ids: m x count, best first. -1 behind the logits above minus infinity where a row has fewer than `count`, and
            throughout a row that has none of them or one of plus infinity. A logit that is not a number is never best.
        logits: m x count, minus infinity where there is no id.
        normalisers: m times ln(sum of e^logit), so that a token's log probability is its logit less this; not a number
            where the row has no id. Empty where they were not asked for.
    """

    ids: Int32Array
    logits: Float32Array
    normalisers: Float32Array

    def first(self, count: int, *, normalised: bool) -> BestTokens:
        """What had been found if so many tokens a row had been asked for, and the normalisers or not."""
        normalisers = self.normalisers if normalised else self.normalisers[:0]
        return BestTokens(self.ids[:, :count], self.logits[:, :count], normalisers)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a pass is to give of the rows that need logits.

    Attributes:
        best: so many of the most likely tokens of each row, and no logits; 0 for logits.
        normalised: the normalisers of the most likely tokens too.
    """

    best: int = 0
    normalised: bool = False

    def of_at_least(self, count: int) -> Wanted:
        """The same, with at least `count` of the most likely tokens; logits hold them all."""
        return Wanted(max(self.best, count), self.normalised) if self.best else self


class Target(Protocol):
    """One sequence on a model. Not thread-safe.

    Whatever happens in a round (error, cancel), `rewind` returns the cache to a committed length.
    """

    @property
    def vocabulary_size(self) -> int: ...

    @property
    def context_length(self) -> int:
        """The most tokens the cache can hold."""
        ...

    @property
    def length(self) -> int:
        """Tokens committed to the cache."""
        ...

    def forward(self, rows: Rows) -> Float32Array:
        """Evaluate rows; nothing is committed.

        Returns:
            (m - rows.logits_from) x vocabulary logits, valid until the next call. Bit-identical for a row
            whatever other rows share the pass.

        Raises:
            ContextLengthError: the rows do not fit into the context.
            MemoryLimitError: nor into the memory of the cache; no sequence has changed then.
        """
        ...

    def best(self, rows: Rows, count: int, *, within: int | None = None, normalised: bool = False) -> BestTokens:
        """Evaluate rows as `forward` does, for those who need the most likely tokens alone: the logits of a large
        vocabulary are not written out.

        Args:
            rows: as for `forward`.
            count: tokens of each row, from 1 to 64.
            within: look at the tokens below this id alone, as if the vocabulary ended there; None looks at all.
            normalised: give the normalisers too.

        Returns:
            What the rows' logits from `forward` would give, bit by bit; the caller's to keep.

        Raises:
            ContextLengthError: the rows do not fit into the context.
            MemoryLimitError: nor into the memory of the cache; no sequence has changed then.
        """
        ...

    def commit(self, path: Sequence[int]) -> None:
        """Keep these rows of the last pass, each the child of the one before it; drop the rest.

        The first must follow the sequence's last committed token.
        """
        ...

    def rewind(self, length: int) -> None:
        """Drop every token after the first `length` committed ones, and any uncommitted rows, and free their memory."""
        ...

    def assume(self, length: int) -> None:
        """Let `length` tokens count as committed, whatever the cache holds in their place: to time passes behind them.

        What passes compute then has no meaning; `rewind(0)` must follow.

        Raises:
            MemoryLimitError: the memory of the cache does not suffice.
        """
        ...

    def copy_from(self, source: Target, length: int) -> None:
        """Drop everything, and hold the first `length` committed tokens of another sequence on the same model.

        Both hold them in the same memory, until one of them goes on otherwise.
        """
        ...


class CacheUsage(NamedTuple):
    """Memory for the keys and values of all sequences on a model.

    Attributes:
        used_bytes: what they hold; what several of them share counts once.
        limit_bytes: what they may hold; None is whatever the system gives.
    """

    used_bytes: int
    limit_bytes: int | None


# Rows of several sequences, each sequence once.
Batch = Sequence[tuple[Target, Rows]]


class Model(Protocol):
    """Weights that sequences are opened on."""

    def open(self, context_length: int) -> Target:
        """Start a sequence with an empty cache of `context_length` tokens."""
        ...

    def limit_cache(self, limit_bytes: int | None) -> None:
        """From now on let sequences take so much memory together; None is whatever the system gives.

        What they hold already they keep.
        """
        ...

    def cache_usage(self) -> CacheUsage:
        """Safe to call on any thread, at any time."""
        ...

    def cache_bytes(self, tokens: int) -> int:
        """Memory that one sequence of so many tokens takes, if it shares none."""
        ...

    def forward(self, batch: Batch) -> Sequence[Float32Array]:
        """Evaluate rows of several sequences in one pass: for each what its own `forward` gives, bit by bit.

        Raises:
            ContextLengthError: a sequence's rows do not fit into its context.
            MemoryLimitError: nor into the memory of the cache; no sequence has changed then.
        """
        ...

    def best(
        self, batch: Batch, count: int, *, within: int | None = None, normalised: bool = False
    ) -> Sequence[BestTokens]:
        """Evaluate rows of several sequences in one pass: for each what its own `best` gives, bit by bit.

        Raises:
            ContextLengthError: a sequence's rows do not fit into its context.
            MemoryLimitError: nor into the memory of the cache; no sequence has changed then.
        """
        ...

    def close(self) -> None:
        """Free the weights. Sequences opened on the model must not be used any more."""
        ...


def of_each(batch: Batch, found: NDArray[Number]) -> list[NDArray[Number]]:
    """What was found for the rows with logits of a whole batch, or nothing, split up among its sequences."""
    parts, start = [], 0
    for _, rows in batch:
        end = start + len(rows.tokens) - rows.logits_from
        parts.append(found[start:end])
        start = end
    return parts


class Shortlist(Protocol):
    """Some tokens of a model's vocabulary, whose logits can be had without those of all others."""

    def __len__(self) -> int: ...

    def add(self, tokens: Sequence[int]) -> None:
        """Take up further tokens, none of them for the second time; their room must have been asked for."""
        ...


@runtime_checkable
class NarrowTarget(Target, Protocol):
    """A sequence whose passes need not give the logits of all tokens."""

    def narrow(self, shortlists: Sequence[Shortlist]) -> None:
        """From now on give the logits of these tokens alone, minus infinity for all others; without a list, of all.

        What the logits of the tokens listed are is the same, bit by bit. No token may be in two lists.
        """
        ...


class NarrowModel(Model, Protocol):
    """A model whose sequences are `NarrowTarget`s."""

    def shortlist(self, tokens: Sequence[int], room: int = 0) -> Shortlist:
        """A list of these tokens, with room for so many more.

        Raises:
            MemoryLimitError: it does not fit into memory.
        """
        ...
