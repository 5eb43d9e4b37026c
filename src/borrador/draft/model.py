"""Drafts written by a second, smaller model."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from borrador.models.prefix import CachedSequence, common_prefix, prefill
from borrador.models.target import Model, Rows
from borrador.sampling.noise import FreshNoise, Noise
from borrador.sampling.shaping import most_likely, seeded_choice, shape
from borrador.types import Draft, Float32Array, SamplingParams


class ModelDrafter:
    """A draft model with the target's vocabulary.

    Args:
        name: shown in traces.
        model: the draft model; closed with the drafter.
        context_length: the most tokens its cache holds; longer contexts get no draft.
        vocabulary_size: of the target; rows that pad the draft model's vocabulary further are ignored.
        end_ids: tokens after which nothing is worth drafting.
    """

    def __init__(
        self,
        name: str,
        model: Model,
        *,
        context_length: int,
        vocabulary_size: int,
        end_ids: frozenset[int] = frozenset(),
    ) -> None:
        self.name = name
        self.vocabulary_size = vocabulary_size
        self._model = model
        self._context_length = context_length
        self.end_ids = end_ids
        self._idle: list[CachedSequence] = []

    def open(self, params: SamplingParams, /) -> ModelDraftSession:
        return ModelDraftSession(self, self._take(), params)

    def step_seconds(self) -> float:
        sequence = self._take()
        sequence.resume((0,))
        rows = Rows.chain((0,))
        seconds = []
        for _ in range(6):
            start = time.perf_counter()
            sequence.target.forward(rows)
            seconds.append(time.perf_counter() - start)
        sequence.settle(())
        self.give_back(sequence)
        return min(seconds[1:])

    def close(self) -> None:
        self._idle.clear()
        self._model.close()

    def give_back(self, sequence: CachedSequence) -> None:
        """Keep a session's sequence for the next request, which may begin alike."""
        self._idle.append(sequence)

    def _take(self) -> CachedSequence:
        return self._idle.pop() if self._idle else CachedSequence(self._model.open(self._context_length))


class ModelDraftSession:
    """One request's drafting. Its cache follows the context and is rewound where the target disagreed.

    Tokens are chosen as the target chooses: greedily, or with a seed by the same seeded noise. Without a seed they are
    drawn from the draft model's own shaped distribution, which the draft records as its q (valid until the next one).
    """

    def __init__(
        self, drafter: ModelDrafter, sequence: CachedSequence, params: SamplingParams, noise: Noise | None = None
    ) -> None:
        self._drafter = drafter
        self._sequence = sequence
        self._target = sequence.target
        self._params = params
        self._noise = noise or FreshNoise()
        self._cached = sequence.tokens
        self._agreed = 0
        self._buffer = np.empty((0, drafter.vocabulary_size), np.float32)

    def propose(self, context: Sequence[int], budget: int) -> Draft:
        budget = min(budget, self._target.context_length - len(context) + 1)
        if budget < 1 or not context:
            return Draft(drafter=self._drafter.name)
        logits = self._catch_up(context)
        q = self._laws(budget)
        tokens: list[int] = []
        while True:
            tokens.append(self._choose(logits, len(context) + len(tokens), None if q is None else q[len(tokens)]))
            if len(tokens) == budget or tokens[-1] in self._drafter.end_ids:
                q = None if q is None else q[: len(tokens)]
                return Draft(tokens=tuple(tokens), q=q, drafter=self._drafter.name)
            logits = self._feed(tokens[-1:])

    def observe(self, committed: Sequence[int]) -> None:
        pass

    def close(self) -> None:
        self._sequence.settle(self._cached)
        self._drafter.give_back(self._sequence)

    def _catch_up(self, context: Sequence[int]) -> Float32Array:
        """Bring the cache from its last draft to the end of the context; logits after it."""
        start = min(self._agreed, len(self._cached))
        kept = start + common_prefix(self._cached[start:], context[start : len(context) - 1])
        self._target.rewind(kept)
        self._cached[kept:] = context[kept:]
        self._agreed = len(context) - 1
        prefill(self._target, context)
        return self._evaluate(context[self._target.length :])

    def _feed(self, tokens: Sequence[int]) -> Float32Array:
        self._cached.extend(tokens)
        return self._evaluate(tokens)

    def _evaluate(self, tokens: Sequence[int]) -> Float32Array:
        logits = self._target.forward(Rows.chain(tokens, logits_from=len(tokens) - 1))
        self._target.commit(range(len(tokens)))
        row: Float32Array = logits[0, : self._drafter.vocabulary_size]
        return row

    def _laws(self, count: int) -> Float32Array | None:
        """Room for the laws that tokens are drawn from, used again by every draft; None where nothing is drawn."""
        if self._params.greedy or self._params.seed is not None:
            return None
        if len(self._buffer) < count:
            self._buffer = np.empty((count, self._drafter.vocabulary_size), np.float32)
        return self._buffer

    def _choose(self, logits: Float32Array, position: int, law_out: Float32Array | None) -> int:
        if self._params.greedy:
            return most_likely(logits)
        if law_out is None:
            return seeded_choice(logits, self._params, position)
        law = shape(logits, self._params)
        law.write(law_out)
        return law.token(self._noise.pick(law.probabilities))
