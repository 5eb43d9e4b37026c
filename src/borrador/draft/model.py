"""Drafts written by a second, smaller model."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from borrador.draft.few_rows import FEW_ROWS, FewRows, fastest_pass
from borrador.draft.growing import Alternative, GrowingDraft, room_for_laws, second_of
from borrador.draft.protocol import GoOn, Hint, Price, always, believed
from borrador.draft.shortlist import Shortlist
from borrador.draft.steps import DraftPass, Steps, alone
from borrador.errors import MemoryLimitError, UsageError
from borrador.models.passes import Evidence
from borrador.models.prefix import CachedSequence, common_prefix, prefill
from borrador.models.target import BestTokens, Model, Rows, Wanted
from borrador.sampling.noise import FreshNoise, Noise
from borrador.sampling.shaping import History, Shaper, first_of, probability_of_first
from borrador.types import Draft, Float32Array

_READING_ROWS = 32
_FOLLOW_HINTS = 0.1
_TRUSTED_FIRST = 0.5
_RESTING_ROUNDS = 64  # after memory has run out

Choose = Callable[[int, GrowingDraft], tuple[int, float, Alternative | None]]


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
        alternatives: where tokens are the model's likeliest, also propose the second likeliest of a row in the place of
            the first, if it is not unlikely and the budget has room; they cost no pass.
        variant: tells it from the same model with weights of other formats; see `VariedDrafter`.
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
        alternatives: bool = False,
        variant: str = "",
    ) -> None:
        self.name = name
        self.variant = variant
        self.vocabulary_size = vocabulary_size
        self.model = model
        self.context_length = context_length
        self.end_ids = end_ids
        self.shortlist = shortlist
        self.alternatives = alternatives
        self.few_rows = FewRows()
        self._idle: list[CachedSequence] = []

    def open(self, shaper: Shaper, /, noise: Noise | None = None) -> ModelDraftSession:
        """Start drafting for a request; tokens are drawn with `noise`, or with fresh noise."""
        return ModelDraftSession(self, self._take(), shaper, noise)

    def open_in(self, namespace: str, shaper: Shaper, /) -> ModelDraftSession:
        return ModelDraftSession(self, self._take(namespace), shaper)

    def price(self) -> Price:
        """Times passes over one row, a few and many on an empty sequence: of each kind the fastest, since other
        programs can only add time. How long a hint may be depends on them too."""
        sequence = self._take()
        sequence.resume((0,))
        many = min(_READING_ROWS, sequence.target.context_length)
        token_s = fastest_pass(sequence.target, Rows.chain((0,)), repeats=6)
        reading_s = fastest_pass(sequence.target, Rows.chain((0,) * many, logits_from=many), repeats=2)
        self.few_rows.observe(1, token_s)
        for rows in range(2, min(FEW_ROWS, sequence.target.context_length) + 1):
            self.few_rows.observe(rows, fastest_pass(sequence.target, Rows.chain((0,) * rows), repeats=3))
        sequence.settle(())
        self.give_back(sequence)
        return Price(token_s, reading_s / many)

    def forget_texts(self) -> None:
        for sequence in self._idle:
            sequence.clear()

    def limit_cache(self, limit_bytes: int | None) -> None:
        self.model.limit_cache(limit_bytes)

    def cache_bytes(self, tokens: int) -> int:
        return self.model.cache_bytes(min(tokens, self.context_length))

    def reclaim(self) -> bool:
        """Drop what idle sequences hold; whether one held anything."""
        held = any(sequence.target.length for sequence in self._idle)
        self.forget_texts()
        return held

    def close(self) -> None:
        self._idle.clear()
        self.shortlist = None
        self.model.close()

    def give_back(self, sequence: CachedSequence) -> None:
        """Keep a session's sequence for the next request of its namespace, which may begin alike."""
        self._idle.append(sequence)

    def _take(self, namespace: str = "") -> CachedSequence:
        related = (index for index in reversed(range(len(self._idle))) if self._idle[index].namespace == namespace)
        index = next(related, 0)
        sequence = self._idle.pop(index) if self._idle else CachedSequence(self.model.open(self.context_length))
        if sequence.namespace != namespace:
            sequence.clear(namespace)
        if self.shortlist is not None:
            self.shortlist.narrow(sequence.target)
        return sequence


class ModelDraftSession:
    """One request's drafting. Its cache follows the context and is rewound where the target disagreed.

    Tokens are chosen as the target chooses: greedily, or with a seed by the same seeded noise. Without a seed they are
    drawn from the draft model's own shaped distribution, which the draft records as its q (valid until the next one).
    Tokens that a grammar leaves no choice about cost no step of their own. With a shortlist the draft model's logits
    are those of the tokens listed, and it never proposes others: its q is 0 there.

    Drafters that cost nothing may hint at what comes next. A pass evaluates the hint behind the last token, and goes on
    with the draft model's own choices as long as the hint holds them: a few rows cost about what one costs, and what is
    proposed is the same with and without hints, token for token and law for law. Source: Chen et al., "Cascade
    Speculative Drafting" (arXiv 2312.11462).
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
        self._hints: Sequence[Hint] = ()
        self._trust = _TRUSTED_FIRST  # share of hints whose first token holds
        self._cached = sequence.tokens
        self._agreed = 0
        self._resting = 0  # rounds until it may draft again
        self._laws = np.empty((0, drafter.vocabulary_size), np.float32)

    def use_hints(self, hints: Sequence[Hint]) -> None:
        self._hints = hints

    def propose(self, context: Sequence[int], budget: int, go_on: GoOn = always) -> Draft:
        return alone(self.steps(context, budget, go_on))

    def steps(self, context: Sequence[int], budget: int, go_on: GoOn = always) -> Steps[Draft]:
        """A draft; an empty one, and for a while no other, where the memory for keys and values is used up."""
        self._resting = max(self._resting - 1, 0)
        if self._resting:
            return Draft(drafter=self._drafter.name)
        try:
            return (yield from self._draft(context, budget, go_on))
        except MemoryLimitError:
            self._make_room()
            return Draft(drafter=self._drafter.name)

    def _draft(self, context: Sequence[int], budget: int, go_on: GoOn) -> Steps[Draft]:
        budget = min(budget, self._target.context_length - len(context) + 1)
        if budget < 1 or not context or not self._knows(context):
            return Draft(drafter=self._drafter.name)
        if not self._shaper.chooses:
            self._laws = room_for_laws(self._laws, budget, self._drafter.vocabulary_size)
        if self._shortlist is not None:
            self._shortlist.follow(context)
        unread = self._catch_up(context)
        draft = GrowingDraft(context, budget, go_on, self._ends, None if self._shaper.chooses else self._laws)
        while not draft.ended:
            unread = yield from self._step(draft, unread, self._hint(draft))
        return draft.finish(self._drafter.name)

    def recheck(self, kept: int) -> None:
        """Tokens of the context from this one on may have changed since they were last given."""
        self._agreed = min(self._agreed, kept)

    def unread(self, context: Sequence[int]) -> int:
        return len(context) - self._kept(context)

    def observe(self, committed: Sequence[int]) -> None:
        pass

    def close(self) -> None:
        self._sequence.settle(self._cached)
        self._drafter.give_back(self._sequence)

    def _make_room(self) -> None:
        """Let others have the memory that this request holds, unless idle sequences hold some."""
        self._target.rewind(0)
        self._cached.clear()
        self._agreed = 0
        self._resting = 0 if self._drafter.reclaim() else _RESTING_ROUNDS

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

    def _hint(self, draft: GrowingDraft) -> Sequence[int]:
        """What may come next, each token known to the draft model and with room for another."""
        count = min(FEW_ROWS - 1, draft.room - 1)
        if count < 1:
            return ()
        context, path = draft.history.context, draft.tokens
        guesses = (hint(context, path, count) for hint in self._hints)
        guess = next((guess for guess in guesses if guess), ())[:count]
        unknown = (index for index, token in enumerate(guess) if not 0 <= token < self._target.vocabulary_size)
        return guess[: next(unknown, len(guess))]

    def _step(self, draft: GrowingDraft, unread: Sequence[int], hint: Sequence[int]) -> Steps[list[int]]:
        """Evaluate unread tokens, which end the draft's history, and a hint; add the tokens that this tells.

        Returns:
            The tokens that are unread now; nothing where the draft has ended.
        """
        first, hint = hint[:1], hint[: self._drafter.few_rows.hint_length(len(unread), self._trust)]
        passed = yield self._pass(unread, hint)
        choose = self._chooser(passed.evidence)
        if draft.tokens and passed.company == 1:
            # The first pass finds the processor's caches full of the target's weights.
            self._drafter.few_rows.observe(len(unread) + len(hint), passed.seconds)
        held, left = 0, list[int]()
        try:
            for row in range(len(hint) + 1):
                token, belief, other = choose(row, draft)
                if row == 0 and first:
                    self._trust += _FOLLOW_HINTS * ((token == first[0]) - self._trust)
                draft.add(token, belief, other)
                forced = draft.add_certain(self._shaper.forced(draft.history, draft.room)) if draft.room else []
                holds = row < len(hint) and hint[row] == token
                held += holds
                left = forced if holds else [token, *forced]
                if draft.ended or left:
                    break
        except UsageError:  # nothing can follow, which is the target's to say, if it comes here
            draft.ended = True
        self._cached += (*unread, *hint[:held])
        self._target.commit(range(len(unread) + held))
        return left

    def _pass(self, unread: Sequence[int], hint: Sequence[int]) -> DraftPass:
        """A pass over unread tokens and a hint."""
        rows = Rows.chain((*unread, *hint), logits_from=len(unread) - 1)
        best = Wanted(1 + self._drafter.alternatives, normalised=True) if self._shaper.takes_best else Wanted()
        return DraftPass(self._drafter.model, self._target, rows, best, self._drafter.vocabulary_size)

    def _chooser(self, evidence: Evidence) -> Choose:
        """What to choose after the last of the unread tokens, and after each of the hint."""
        if isinstance(evidence, BestTokens):
            return lambda row, _draft: (
                first_of(evidence, row),
                believed(probability_of_first(evidence, row)),
                second_of(evidence, row) if self._drafter.alternatives else None,
            )
        return lambda row, draft: (*self._choose(evidence[row], draft.history, draft.law_out), None)

    def _choose(self, logits: Float32Array, history: History, law_out: Float32Array | None) -> tuple[int, float]:
        """A token to follow, and its probability by the draft model."""
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
