"""Models that run on the native engine: a GGUF file's weights, and sequences on them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from borrador import _native
from borrador.config import DraftWeights
from borrador.errors import ContextLengthError, MemoryLimitError, ModelError
from borrador.models.config import ModelConfig
from borrador.models.gguf import GgufFile, TensorFormat
from borrador.models.rounding import ROUNDED, tensors_to_round
from borrador.models.target import Batch, BestTokens, CacheUsage, Rows, Shortlist, Target, of_each
from borrador.models.weights import build_engine, default_threads, load_tensors
from borrador.types import Float32Array, Int32Array


class NativeModel:
    """Weights in the kernels' layout, ready to evaluate rows. One pass at a time.

    Attributes:
        config: the model's shape.
        metadata: the GGUF file's metadata, for tokenizer and chat template.
        rounded_to: the format that some of the file's tensors were rounded to; None where all are as in the file.
    """

    def __init__(
        self,
        config: ModelConfig,
        metadata: Mapping[str, Any],
        engine: _native.Transformer,
        rounded_to: TensorFormat | None = None,
    ) -> None:
        self.config = config
        self.metadata = metadata
        self.rounded_to = rounded_to
        self._engine: _native.Transformer | None = engine

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], threads: int | None = None, *, weights: DraftWeights = "file"
    ) -> NativeModel:
        """Read a GGUF file and repack its weights.

        Args:
            path: the file.
            threads: threads for the matrix work; None takes the cores this process may use.
            weights: as `EngineConfig.draft_weights`. Anything but `file` may change logits: for draft models alone.

        Raises:
            ModelError: the file is missing, damaged or of a kind that is not supported.
            MemoryLimitError: the weights do not fit into the memory that is free.
            UsageError: `BORRADOR_ISA` names an instruction set that this machine lacks.
        """
        with GgufFile.open(path) as file:
            config = ModelConfig.from_gguf(file)
            rounded = tensors_to_round(file, weights)
            engine = build_engine(file, config, threads or default_threads(), rounded)
            load_tensors(file, config, engine, rounded)
            return cls(config, file.metadata, engine, ROUNDED if rounded else None)

    @property
    def engine(self) -> _native.Transformer:
        if self._engine is None:
            raise ModelError("the model is closed", "Load it again.")
        return self._engine

    @property
    def weights_bytes(self) -> int:
        """Bytes of weights that a pass with logits reads."""
        return self.engine.weights_bytes

    @property
    def head_share(self) -> float:
        """What of these bytes belongs to the LM head, from 0 to 1."""
        return self.engine.head_bytes / self.engine.weights_bytes

    @property
    def row_macs(self) -> int:
        """Multiply-accumulates that one row of a pass with logits takes in the matrices."""
        return self.engine.row_macs

    def integer_peak(self) -> float:
        """Byte multiply-accumulates a second that the integer units give at best; measured, which takes 0.1 s."""
        return self.engine.integer_peak()

    @property
    def threads(self) -> int:
        return self.engine.threads

    @property
    def isa(self) -> str:
        """The instruction set its kernels use."""
        return self.engine.isa

    def open(self, context_length: int) -> NativeSequence:
        """Start a sequence with an empty cache of `context_length` tokens; memory is taken as it fills.

        Raises:
            MemoryLimitError: no machine has the memory for it.
        """
        try:
            return NativeSequence(self, self.engine.make_cache(context_length))
        except MemoryError as error:
            raise MemoryLimitError(
                f"a cache for {context_length} tokens does not fit into memory", "Choose a smaller context."
            ) from error

    def limit_cache(self, limit_bytes: int | None) -> None:
        self.engine.cache_pool.limit_bytes = limit_bytes

    def cache_usage(self) -> CacheUsage:
        pool = self.engine.cache_pool
        return CacheUsage(pool.used_bytes, pool.limit_bytes)

    def cache_bytes(self, tokens: int) -> int:
        return self.engine.cache_pool.bytes_of(tokens)

    def short_of_cache(self, error: MemoryError) -> MemoryLimitError:
        """What to say where a pass cannot have the memory that the keys and values of its rows take."""
        usage = self.cache_usage()
        if usage.limit_bytes is None or not isinstance(error, _native.CacheLimitError):
            message = f"keys and values take {usage.used_bytes / 1e6:.1f} MB, and the system refuses more memory"
            return MemoryLimitError(message, "Close other programs, or choose a smaller context.")
        return MemoryLimitError(
            f"keys and values may take {usage.limit_bytes / 1e6:.1f} MB of memory, and more is needed than the "
            f"{max(usage.limit_bytes - usage.used_bytes, 0) / 1e6:.1f} MB that are left",
            "Wait until other requests have ended, or allow more memory.",
        )

    def shortlist(self, tokens: Sequence[int], room: int = 0) -> NativeShortlist:
        """Tokens whose rows of the LM head lie together, with room for so many more. See `NarrowModel.shortlist`."""
        try:
            shortlist = NativeShortlist(self.engine.make_short_head(len(tokens) + room))
        except MemoryError as error:
            raise MemoryLimitError(
                f"a shortlist of {len(tokens) + room} tokens does not fit into memory", "Choose a smaller one."
            ) from error
        shortlist.add(tokens)
        return shortlist

    def forward(self, batch: Batch) -> list[Float32Array]:
        return of_each(batch, self.find_logits(self._native_rows(batch), self._heads_of(batch)))

    def best(
        self, batch: Batch, count: int, *, within: int | None = None, normalised: bool = False
    ) -> list[BestTokens]:
        found = self.find_best(self._native_rows(batch), count, within, normalised, self._heads_of(batch))
        return [BestTokens(*parts) for parts in zip(*(of_each(batch, array) for array in found), strict=True)]

    def _native_rows(self, batch: Batch) -> list[_native.SequenceRows]:
        return [self.own(sequence).native_rows(rows) for sequence, rows in batch]

    def _heads_of(self, batch: Batch) -> Sequence[Sequence[_native.ShortHead]]:
        """The shortlists of each sequence of a pass."""
        return [self.own(sequence).heads for sequence, _ in batch]

    def own(self, sequence: Target) -> NativeSequence:
        if not isinstance(sequence, NativeSequence) or not sequence.is_on(self):
            raise ModelError("a pass takes sequences of one model", "Open them on the model that evaluates them.")
        return sequence

    def find_logits(
        self, rows: Sequence[_native.SequenceRows], heads: Sequence[Sequence[_native.ShortHead]]
    ) -> Float32Array:
        try:
            return self.engine.forward(rows, heads=heads)
        except MemoryError as error:
            raise self.short_of_cache(error) from error

    def find_best(
        self,
        rows: Sequence[_native.SequenceRows],
        count: int,
        within: int | None,
        normalised: bool,
        heads: Sequence[Sequence[_native.ShortHead]],
    ) -> tuple[Int32Array, Float32Array, Float32Array]:
        size = self.config.vocabulary_size
        within = size if within is None else min(within, size)
        try:
            return self.engine.best(rows, count=count, within=within, normaliser=normalised, heads=heads)
        except MemoryError as error:
            raise self.short_of_cache(error) from error

    def close(self) -> None:
        """Free the weights once no sequence uses them."""
        self._engine = None


class NativeShortlist:
    """Rows of a model's LM head; fulfils `Shortlist`."""

    def __init__(self, head: _native.ShortHead) -> None:
        self.head = head

    def __len__(self) -> int:
        return len(self.head)

    def add(self, tokens: Sequence[int]) -> None:
        self.head.add(np.array(tokens, np.int32))

    @property
    def bytes(self) -> int:
        """Bytes of weights that a pass reads of it."""
        return self.head.bytes


class NativeSequence:
    """One sequence on a native model; fulfils `NarrowTarget`."""

    def __init__(self, model: NativeModel, cache: _native.KvCache) -> None:
        self._model = model
        self.heads: list[_native.ShortHead] = []
        self.cache = cache

    @property
    def vocabulary_size(self) -> int:
        return self._model.config.vocabulary_size

    @property
    def context_length(self) -> int:
        return self.cache.capacity

    @property
    def length(self) -> int:
        return self.cache.length

    def is_on(self, model: NativeModel) -> bool:
        return self._model is model

    def native_rows(self, rows: Rows) -> _native.SequenceRows:
        """The rows as the engine takes them. Raises ContextLengthError where they do not fit into the context."""
        length = self.length + len(rows.tokens)
        if length > self.context_length:
            raise ContextLengthError(
                f"the context holds {self.context_length} tokens, and {length} were asked for",
                "Choose a larger context.",
            )
        return self.cache, rows.tokens, rows.parents, rows.logits_from

    def forward(self, rows: Rows) -> Float32Array:
        return self._model.find_logits((self.native_rows(rows),), (self.heads,))

    def best(self, rows: Rows, count: int, *, within: int | None = None, normalised: bool = False) -> BestTokens:
        model = self._model
        return BestTokens(*model.find_best((self.native_rows(rows),), count, within, normalised, (self.heads,)))

    def hidden(self, rows: Rows) -> Float32Array:
        """Hidden states after the last norm, of the rows of the last pass that asked for logits."""
        return self._model.engine.hidden(len(rows.tokens) - rows.logits_from)

    def narrow(self, shortlists: Sequence[Shortlist]) -> None:
        self.heads = [shortlist.head for shortlist in shortlists if isinstance(shortlist, NativeShortlist)]
        if len(self.heads) != len(shortlists):
            raise TypeError("a shortlist of another kind of model")

    def commit(self, path: Sequence[int]) -> None:
        self.cache.commit(path)

    def rewind(self, length: int) -> None:
        self.cache.rewind(length)

    def assume(self, length: int) -> None:
        try:
            self.cache.assume(length)
        except MemoryError as error:
            raise self._model.short_of_cache(error) from error

    def copy_from(self, source: Target, length: int) -> None:
        self.cache.copy_from(self._model.own(source).cache, length)
