"""Drafts written by a second, smaller model."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from borrador.draft.protocol import CERTAIN, GoOn, Price, always, believed
from borrador.draft.shortlist import Shortlist
from borrador.errors import UsageError
from borrador.models.prefix import CachedSequence, common_prefix, prefill
from borrador.models.target import Model, Rows, Target
from borrador.sampling.noise import FreshNoise, Noise
from borrador.sampling.shaping import History, Shaper, first_of, probability_of_first
from borrador.types import Draft, Float32Array

_READING_ROWS = 32


class ModelDrafter:
    """A draft model with the target's vocabulary.

    Args:
        name: shown in traces.
        model: the draft model; closed with the drafter.
        context_length: the most tokens its cache holds; longer contexts get no draft.
        vocabulary_size: of the target; rows that pad the draft model's vocabulary further are ignored. Where they are
            fewer than the target's, contexts with a token that the draft model lacks get no draft.
        end_ids: tokens after which nothing is worth drafting.
        shortlist: the tokens that may be proposed, which makes a step cheaper; None proposes any.
    """

    def __init__(
        self,
        name: str,
        model: Model,
        *,
        context_length: int,
        vocabulary_size: int,
        end_ids: frozenset[int] = frozenset(),
        shortlist: Shortlist | None = None,
    ) -> None:
        self.name = name
        self.vocabulary_size = vocabulary_size
        self.model = model
        self.context_length = context_length
        self.end_ids = end_ids
        self.shortlist = shortlist
        self._idle: list[CachedSequence] = []

    def open(self, shaper: Shaper, /, noise: Noise | None = None) -> ModelDraftSession:
        """Start drafting for a request; tokens are drawn with `noise`, or with fresh noise."""
        return ModelDraftSession(self, self._take(), shaper, noise)

    def price(self) -> Price:
        """Times passes over one row and over many on an empty sequence: of each kind the fastest, since other programs
        can only add time."""
        sequence = self._take()
        sequence.resume((0,))
        many = min(_READING_ROWS, sequence.target.context_length)
        token_s = _fastest_pass(sequence.target, Rows.chain((0,)), repeats=6)
        reading_s = _fastest_pass(sequence.target, Rows.chain((0,) * many, logits_from=many), repeats=2)
        sequence.settle(())
        self.give_back(sequence)
        return Price(token_s, reading_s / many)

    def close(self) -> None:
        self._idle.clear()
        self.shortlist = None
        self.model.close()

    def give_back(self, sequence: CachedSequence) -> None:
        """Keep a session's sequence for the next request, which may begin alike."""
        self._idle.append(sequence)

    def _take(self) -> CachedSequence:
        sequence = self._idle.pop() if self._idle else CachedSequence(self.model.open(self.context_length))
        if self.shortlist is not None:
            self.shortlist.narrow(sequence.target)
        return sequence


class ModelDraftSession:
    """One request's drafting. Its cache follows the context and is rewound where the target disagreed.

    Tokens are chosen as the target chooses: greedily, or with a seed by the same seeded noise. Without a seed they are
    drawn from the draft model's own shaped distribution, which the draft records as its q (valid until the next one).
    Tokens that a grammar leaves no choice about cost no step of their own. With a shortlist the draft model's logits
    are those of the tokens listed, and it never proposes others: its q is 0 there.
    """

    def __init__(
        self, drafter: ModelDrafter, sequence: CachedSequence, shaper: Shaper, noise: Noise | None = None
    ) -> None:
        self._drafter = drafter
        self._sequence = sequence
        self._target = sequence.target
        self._shaper = shaper
        self._noise = noise or FreshNoise()
        self._shortlist = None if drafter.shortlist is None else drafter.shortlist.open(sequence.target)
        self._cached = sequence.tokens
        self._agreed = 0
        self._buffer = np.empty((0, drafter.vocabulary_size), np.float32)

    def propose(self, context: Sequence[int], budget: int, go_on: GoOn = always) -> Draft:
        budget = min(budget, self._target.context_length - len(context) + 1)
        if budget < 1 or not context or not self._knows(context):
            return Draft(drafter=self._drafter.name)
        if self._shortlist is not None:
            self._shortlist.follow(context)
        unread = self._catch_up(context)
        q = self._laws(budget)
        tokens: list[int] = []
        confidence: list[float] = []
        forced: Sequence[int] = ()
        while True:
            law_out = None if q is None else q[len(tokens)]
            if forced:
                token, belief = _certain(forced[0], law_out)
                forced = forced[1:]
            else:
                try:
                    token, belief = self._next(unread, History(context, tokens), law_out)
                except UsageError:  # nothing can follow, which is the target's to say, if it comes here
                    break
                unread = []
            tokens.append(token)
            confidence.append(belief)
            history = History(context, tokens)
            if not go_on(belief) or len(tokens) == budget or self._ends(history):
                break
            unread.append(token)
            forced = forced or self._shaper.forced(history, budget - len(tokens))
        return Draft(
            tokens=tuple(tokens),
            q=None if q is None else q[: len(tokens)],
            drafter=self._drafter.name,
            confidence=tuple(confidence),
        )

    def unread(self, context: Sequence[int]) -> int:
        return len(context) - self._kept(context)

    def observe(self, committed: Sequence[int]) -> None:
        pass

    def close(self) -> None:
        self._sequence.settle(self._cached)
        self._drafter.give_back(self._sequence)

    def _catch_up(self, context: Sequence[int]) -> list[int]:
        """Bring the cache from its last draft towards the end of the context; the tokens that are left to evaluate."""
        kept = self._kept(context)
        self._target.rewind(kept)
        del self._cached[kept:]  # before anything can interrupt: the sequence outlives this request
        self._agreed = len(context) - 1
        prefill(self._target, context)
        self._cached += context[kept : self._target.length]
        return list(context[self._target.length :])

    def _knows(self, context: Sequence[int]) -> bool:
        """Whether the draft model has every token of the context."""
        return max(context[self._kept(context) :]) < self._target.vocabulary_size

    def _kept(self, context: Sequence[int]) -> int:
        """How much of the context the cache holds; its last token is always evaluated again."""
        start = min(self._agreed, len(self._cached))
        self._agreed = start + common_prefix(self._cached[start:], context[start : len(context) - 1])
        return self._agreed

    def _laws(self, count: int) -> Float32Array | None:
        """Room for the laws that tokens are drawn from, used again by every draft; None where nothing is drawn."""
        if self._shaper.chooses:
            return None
        if len(self._buffer) < count:
            self._buffer = np.empty((count, self._drafter.vocabulary_size), np.float32)
        return self._buffer

    def _next(self, unread: Sequence[int], history: History, law_out: Float32Array | None) -> tuple[int, float]:
        """Evaluate tokens that end the history; a token to follow, and its probability by the draft model."""
        self._cached.extend(unread)
        rows = Rows.chain(unread, logits_from=len(unread) - 1)
        vocabulary_size = self._drafter.vocabulary_size
        if self._shaper.takes_best:
            best = self._target.best(rows, 1, within=vocabulary_size, normalised=True)
            self._target.commit(range(len(unread)))
            return first_of(best, 0), believed(probability_of_first(best, 0))
        logits = self._target.forward(rows)
        self._target.commit(range(len(unread)))
        return self._choose(logits[0, :vocabulary_size], history, law_out)

    def _choose(self, logits: Float32Array, history: History, law_out: Float32Array | None) -> tuple[int, float]:
        if law_out is not None:
            law = self._shaper.law(logits, history)
            law.write(law_out)
            index = self._noise.pick(law.probabilities)
            return law.token(index), believed(float(law.probabilities[index]))
        token = self._shaper.choice(logits, history)
        return token, believed(self._shaper.confidence(logits, token, history))

    def _ends(self, history: History) -> bool:
        """Nothing is worth drafting after these tokens."""
        return history.path[-1] in self._drafter.end_ids or self._shaper.is_complete(history)


def _certain(token: int, law_out: Float32Array | None) -> tuple[int, float]:
    if law_out is not None:
        law_out.fill(0.0)
        law_out[token] = 1.0
    return token, CERTAIN


def _fastest_pass(target: Target, rows: Rows, repeats: int) -> float:
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        target.forward(rows)
        seconds.append(time.perf_counter() - start)
        target.rewind(target.length)
    return min(seconds)
