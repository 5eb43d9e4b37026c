"""Every rule by exact enumeration: what is written follows the target's law, and variants that are wrong do not."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import cast

import numpy as np
import pytest
from tests.sampling.enumeration import (
    EXACT,
    VOCABULARY,
    Chance,
    Context,
    Judge,
    Law,
    Round,
    as_certain,
    by_block,
    by_choice,
    by_rejection,
    chain_round,
    distribution,
    error,
    outcomes_of,
    plain_law,
    random_law,
    tree_round,
    truncated,
    written,
    written_law,
)

from borrador.sampling import acceptance
from borrador.sampling.acceptance import LawOfRow
from borrador.sampling.noise import Noise
from borrador.sampling.shaping import Distribution
from borrador.types import Float32Array, Float64Array, Verdict

DRAWN: list[Judge] = [by_rejection, by_block]
EVERY: list[Judge] = [*DRAWN, as_certain, by_choice]
TREES = [(-1, -1), (-1, -1, -1), (-1, 0, 0), (-1, -1, 0, 1), (-1, -1, 1, 1)]
WRONG = 0.01  # a mistake moves this much probability at least


def constant(*law: float) -> Law:
    return lambda context: np.array(law)


def best_of(law: Law) -> Law:
    return lambda context: np.eye(VOCABULARY)[law(context).argmax()]


def worst_of(law: Law) -> Law:
    return lambda context: np.eye(VOCABULARY)[law(context).argmin()]


@pytest.mark.parametrize("judge", EVERY)
@pytest.mark.parametrize("gamma", [1, 2, 3])
@pytest.mark.parametrize("seed", [0, 1])
def test_chains_leave_the_targets_law_unchanged(judge: Judge, gamma: int, seed: int) -> None:
    p, q = random_law(seed), random_law(seed + 50)
    play = chain_round(judge, p, q, gamma)
    assert max(error(play, p, length) for length in (1, 2, 3)) < EXACT


@pytest.mark.parametrize("judge", EVERY)
def test_chains_of_truncated_laws_with_other_support_are_exact(judge: Judge) -> None:
    p, q = truncated(random_law(2), 0.25), truncated(random_law(52), 0.2)
    assert any(np.any((p((token,)) == 0.0) & (q((token,)) > 0.0)) for token in range(VOCABULARY))
    for sparse in (False, True):
        assert error(chain_round(judge, p, q, 2, sparse=sparse), p, 3) < EXACT


@pytest.mark.parametrize("judge", EVERY)
def test_no_drafter_changes_the_law(judge: Judge) -> None:
    """Always right, always wrong, always the same token, at random, and the target's own law."""
    p = random_law(3)
    for q in (best_of(p), worst_of(p), constant(1.0, 0.0, 0.0), constant(1 / 3, 1 / 3, 1 / 3), p):
        assert error(chain_round(judge, p, q, 2), p, 3) < EXACT


@pytest.mark.parametrize("judge", DRAWN)
def test_a_draft_may_end_where_its_tokens_suggest_it(judge: Judge) -> None:
    p, q = random_law(4), random_law(54)

    def play(context: Context, chance: Chance) -> tuple[int, ...]:
        draft: tuple[int, ...] = ()
        while len(draft) < 3 and (not draft or draft[-1] != 1):  # token 1 ends it
            draft += (chance.decide(q(context + draft).tolist()),)
        laws = np.stack([q(context + draft[:index]) for index in range(len(draft))])
        return written(draft, judge(draft, laws, lambda row: distribution(p(context + draft[:row])), chance))

    assert error(play, p, 3) < EXACT


@pytest.mark.parametrize("parents", TREES)
@pytest.mark.parametrize("seed", [5, 6])
def test_trees_without_a_seed_leave_the_targets_law_unchanged(parents: Sequence[int], seed: int) -> None:
    p, q = random_law(seed), random_law(seed + 50)
    assert error(tree_round(p, q, parents), p, 2) < EXACT
    assert error(tree_round(p, q, parents, certain=True), p, 2) < EXACT
    assert error(tree_round(truncated(p, 0.2), q, parents, sparse=True), truncated(p, 0.2), 2) < EXACT


def accepted_per_round(play: Round) -> float:
    """Draft tokens accepted on average after an empty context."""
    return sum((len(tokens) - 1) * probability for tokens, probability in outcomes_of(partial(play, ())).items())


def test_a_second_sibling_is_accepted_where_the_first_is_refused() -> None:
    p, q = random_law(7), random_law(57)
    alone = accepted_per_round(tree_round(p, q, (-1,)))
    assert alone == pytest.approx(float(np.minimum(p(()), q(())).sum()))
    assert accepted_per_round(tree_round(p, q, (-1, -1))) > alone + 0.05


def resampled_from_p(p: Distribution, q: Float32Array) -> Distribution:
    return p


@pytest.mark.parametrize("judge", DRAWN)
def test_resampling_from_p_instead_of_the_residual_is_noticed(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    p, q = random_law(0), random_law(50)
    assert error(chain_round(judge, p, q, 2), p, 2) < EXACT
    monkeypatch.setattr(acceptance, "residual", resampled_from_p)
    for length in (1, 2, 3):
        assert error(chain_round(judge, p, q, 2), p, length) > WRONG


def test_resampling_from_p_after_siblings_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acceptance, "residual", resampled_from_p)
    p, q = random_law(0), random_law(50)
    assert error(tree_round(p, q, (-1, -1)), p, 1) > WRONG


@pytest.mark.parametrize("judge", DRAWN)
def test_a_draft_temperature_that_was_not_recorded_is_noticed(judge: Judge) -> None:
    p, q = random_law(0), random_law(50)
    colder = random_law(50, sharpness=2.0)
    assert error(chain_round(judge, p, colder, 2), p, 2) < EXACT
    for length in (1, 2, 3):
        assert error(chain_round(judge, p, q, 2, drawn_from=colder), p, length) > WRONG


@pytest.mark.parametrize("judge", DRAWN)
def test_a_top_p_of_the_draft_that_was_not_recorded_is_noticed(judge: Judge) -> None:
    p, q = random_law(0), random_law(50)
    narrower = truncated(q, 0.2)
    assert error(chain_round(judge, p, narrower, 2), p, 2) < EXACT
    for length in (1, 2, 3):
        assert error(chain_round(judge, p, q, 2, drawn_from=narrower), p, length) > WRONG


@pytest.mark.parametrize("judge", DRAWN)
def test_pruning_drawn_tokens_by_what_they_are_is_noticed(judge: Judge) -> None:
    """A draft that ends before a token because of that token, as one cut at the first that a grammar forbids."""
    p, q = random_law(0), random_law(50)

    def play(context: Context, chance: Chance) -> tuple[int, ...]:
        token = chance.decide(q(context).tolist())
        draft = () if token == 1 else (token,)
        laws = q(context)[None][: len(draft)]
        return written(draft, judge(draft, laws, lambda row: distribution(p(context + draft[:row])), chance))

    assert error(play, p, 1) > WRONG


class OneVariate:
    """Noise whose every decision comes from one uniform variate."""

    def __init__(self, u: float) -> None:
        self._u = u

    def accepts(self, probability: float) -> bool:
        return self._u < probability

    def pick(self, weights: Float32Array) -> int:
        return int(np.searchsorted(np.cumsum(weights / weights.sum()), self._u, side="right"))


@pytest.mark.parametrize("judge", DRAWN)
@pytest.mark.parametrize("drafted_with_it", [True, False])
def test_noise_used_twice_is_noticed(judge: Judge, drafted_with_it: bool) -> None:
    """One variate for draft and acceptance, or for acceptance and residual: 600 equally likely values of it."""
    p, q = constant(0.3, 0.35, 0.35), constant(0.1, 0.2, 0.7)

    def play(context: Context, chance: Chance) -> tuple[int, ...]:
        shared = OneVariate((chance.decide([1.0] * 600) + 0.5) / 600)
        token = shared.pick(q(context).astype(np.float32)) if drafted_with_it else chance.decide(q(context).tolist())
        return written((token,), judge((token,), q(context)[None], lambda row: distribution(p(context)), shared))

    assert error(play, p, 1) > WRONG


def test_siblings_drawn_with_replacement_are_noticed() -> None:
    p, q = random_law(0), random_law(50)
    assert error(tree_round(p, q, (-1, -1), replaced=True), p, 1) > WRONG
    assert error(tree_round(p, q, (-1, -1), replaced=True, certain=True), p, 1) < EXACT


def test_siblings_out_of_the_order_they_were_drawn_in_are_noticed() -> None:
    p, q = random_law(0), random_law(50)

    def play(context: Context, chance: Chance) -> tuple[int, ...]:
        first = chance.decide(q(context).tolist())
        second = chance.decide([0.0 if token == first else float(q(context)[token]) for token in range(VOCABULARY)])
        tokens = sorted((first, second))
        laws = cast("Float32Array", np.stack([q(context)] * 2))
        law = distribution(p(context))
        verdict = acceptance.accept_by_rejection(tokens, laws, lambda row: law, chance, parents=(-1, -1))
        return written(tokens, verdict)

    assert error(play, p, 1) > WRONG


@pytest.mark.parametrize("gamma", [1, 2, 3])
def test_a_block_keeps_at_least_as_many_tokens_as_rejection(gamma: int) -> None:
    gains = []
    for seed in range(12):
        p, q = random_law(seed), random_law(seed + 50)
        gains.append(
            accepted_per_round(chain_round(by_block, p, q, gamma))
            - accepted_per_round(chain_round(by_rejection, p, q, gamma))
        )
    assert min(gains) > -EXACT
    assert max(gains) < EXACT if gamma == 1 else max(gains) > 0.01


def test_the_gain_of_a_block_is_that_of_its_papers_example() -> None:
    """Two tokens, p = (1/3, 2/3) and q = (2/3, 1/3) whatever stands before (arXiv 2403.10444)."""
    p, q = constant(1 / 3, 2 / 3, 0.0), constant(2 / 3, 1 / 3, 0.0)
    assert accepted_per_round(chain_round(by_rejection, p, q, 2)) == pytest.approx(10 / 9)
    assert accepted_per_round(chain_round(by_block, p, q, 2)) == pytest.approx(11 / 9)
    assert accepted_per_round(chain_round(by_choice, p, q, 2)) == pytest.approx(4 / 9 + 16 / 81)


def test_certain_tokens_gain_nothing_from_blocks() -> None:
    p = random_law(8)
    for q in (best_of(p), worst_of(p), constant(0.0, 0.0, 1.0)):
        assert accepted_per_round(chain_round(by_block, p, q, 2)) == pytest.approx(
            accepted_per_round(chain_round(by_rejection, p, q, 2))
        )


def leniently(lenience: float) -> Judge:
    def judge(tokens: Sequence[int], q: Float64Array, p: LawOfRow, noise: Noise) -> Verdict:
        return acceptance.accept_by_rejection(tokens, cast("Float32Array", q), p, noise, lenience=lenience)

    return judge


@pytest.mark.parametrize("lenience", [1.0, 0.5, 0.1])
def test_lenience_accepts_as_often_as_its_definition_says(lenience: float) -> None:
    p, q = random_law(0), random_law(50)
    expected = float(np.minimum(p(()) / lenience, q(())).sum())
    assert accepted_per_round(chain_round(leniently(lenience), p, q, 1)) == pytest.approx(expected)
    assert (error(chain_round(leniently(lenience), p, q, 2), p, 2) < EXACT) == (lenience == 1.0)


@pytest.mark.parametrize("seed", range(6))
def test_no_token_is_more_than_1_over_lenience_times_as_likely(seed: int) -> None:
    p, q, lenience = random_law(seed, 2.0), random_law(seed + 50, 2.0), 0.3
    exact = plain_law(p, 1)
    for play in (
        chain_round(leniently(lenience), p, q, 1),
        tree_round(p, q, (-1, -1), lenience=lenience),
        tree_round(p, q, (-1, -1), lenience=lenience, certain=True),
    ):
        for tokens, probability in written_law(play, 1).items():
            assert probability <= exact[tokens] / lenience + EXACT
