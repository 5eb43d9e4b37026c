"""Trimmed drafts by exact enumeration: what is written follows the masked target's law."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import cast

import numpy as np
import pytest
from tests.grammar.shapes import open_matcher, tokens_of
from tests.sampling.enumeration import (
    EXACT,
    Chance,
    Context,
    Judge,
    Law,
    Outcomes,
    as_certain,
    by_block,
    by_rejection,
    distance,
    distribution,
    written,
    written_law,
)
from tests.scripted import VOCABULARY

from borrador.draft.trim import trim
from borrador.sampling.acceptance import accept_by_rejection
from borrador.sampling.shaping import History
from borrador.types import Draft, Float32Array, Float64Array, SamplingParams

LETTERS_USED = 3
LENGTH = 3
GRAMMAR = open_matcher(SamplingParams(regex="(ab|ba|bc|cb|ca)(a|b)"))
WRONG = 0.01

Trim = Callable[[Draft, Context], Draft]


def law_of(seed: int) -> Law:
    """Of the letters a, b and c, and 0 for all others."""

    def law(context: Context) -> Float64Array:
        weights = np.zeros(VOCABULARY)
        weights[:LETTERS_USED] = np.exp(np.random.default_rng((seed, *context)).normal(size=LETTERS_USED))
        return np.asarray(weights / weights.sum())

    return law


def masked(law: Law) -> Law:
    def within(context: Context) -> Float64Array:
        allowed = tokens_of(GRAMMAR.mask(History(context)), VOCABULARY)
        weights = np.where([token in allowed for token in range(VOCABULARY)], law(context), 0.0)
        return np.asarray(weights / weights.sum()) if len(context) < LENGTH else law(context)

    return within


def plain(p: Law) -> Outcomes:
    return {
        tokens: float(np.prod([p(tokens[:index])[token] for index, token in enumerate(tokens)]))
        for tokens in itertools.product(range(LETTERS_USED), repeat=LENGTH)
    }


def keep_refused(draft: Draft, context: Context) -> Draft:
    return trim(draft, context, GRAMMAR)


def drop_refused(draft: Draft, context: Context) -> Draft:
    """As if nobody had drawn the token that is refused."""
    laws, certain = draft.q, trim(replace(draft, q=None), context, GRAMMAR)
    return replace(certain, q=None if laws is None else laws[: len(certain.tokens)])


def error_of_chains(judge: Judge, shorten: Trim, gamma: int) -> float:
    p, q = masked(law_of(1)), law_of(2)

    def play(context: Context, chance: Chance) -> tuple[int, ...]:
        tokens: tuple[int, ...] = ()
        for _ in range(gamma):
            tokens += (chance.decide(q(context + tokens).tolist()),)
        laws = np.stack([q(context + tokens[:index]) for index in range(gamma)])
        draft = shorten(Draft(tokens=tokens, q=cast("Float32Array", laws)), context)
        kept, laws = draft.tokens, cast("Float64Array", draft.q)
        return written(kept, judge(kept, laws, lambda row: distribution(p(context + kept[:row])), chance))

    return distance(written_law(play, LENGTH), plain(p))


@pytest.mark.parametrize("gamma", [1, 2, 3])
@pytest.mark.parametrize("judge", [by_rejection, by_block])
def test_a_trimmed_chain_of_drawn_tokens_leaves_the_law_unchanged(judge: Judge, gamma: int) -> None:
    assert error_of_chains(judge, keep_refused, gamma) < EXACT


def test_a_trimmed_chain_of_certain_tokens_leaves_the_law_unchanged() -> None:
    assert error_of_chains(as_certain, drop_refused, 3) < EXACT


@pytest.mark.parametrize("gamma", [1, 2, 3])
def test_forgetting_the_refused_token_would_not(gamma: int) -> None:
    assert error_of_chains(by_rejection, drop_refused, gamma) > WRONG


@pytest.mark.parametrize("parents", [(-1, -1), (-1, -1, 0, 1), (-1, -1, 1, 1), (-1, 0, 0, 1)])
def test_a_trimmed_tree_of_drawn_tokens_leaves_the_law_unchanged(parents: Sequence[int]) -> None:
    p, q = masked(law_of(3)), law_of(4)

    def play(context: Context, chance: Chance) -> tuple[int, ...]:
        tokens: tuple[int, ...] = ()
        laws = np.full((len(parents), VOCABULARY), np.nan)
        for index, parent in enumerate(parents):
            before = context + Draft(tokens=tokens, parents=tuple(parents[:index])).path_to(parent + 1)
            laws[parent + 1] = q(before)
            weights = laws[parent + 1].copy()
            weights[[token for token, above in zip(tokens, parents, strict=False) if above == parent]] = 0.0
            tokens += (chance.decide(weights.tolist()),)
        whole = Draft(tokens=tokens, parents=tuple(parents), q=cast("Float32Array", laws))
        draft = trim(whole, context, GRAMMAR)
        verdict = accept_by_rejection(
            draft.tokens,
            draft.q,
            lambda row: distribution(p(context + draft.path_to(row))),
            chance,
            parents=draft.parents,
        )
        return written(draft.tokens, verdict)

    assert distance(written_law(play, LENGTH), plain(p)) < EXACT
