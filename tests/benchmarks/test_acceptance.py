"""The theory that measured acceptance is compared with."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import partial

import numpy as np
import pytest
from benchmarks import acceptance_theory as theory
from benchmarks.acceptance import RoundOfDraft, expectation, tables
from tests.sampling.enumeration import Law, by_block, by_rejection, chain_round, outcomes_of, random_law

from borrador.bench.theory import overlap
from borrador.sampling.shaping import History, Shaper
from borrador.types import Float64Array, SamplingParams


def laws(seed: int, size: int) -> Float64Array:
    weights = np.exp(np.random.default_rng(seed).normal(size=(2, size)) * 1.5)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def test_agreement_is_that_of_seeded_choices() -> None:
    p, q = laws(3, 12)
    p[2] = q[7] = 0.0
    p, q = p / p.sum(), q / q.sum()
    by_definition = sum(
        1.0 / sum(max(p[y] / p[x], q[y] / q[x]) for y in range(12)) for x in range(12) if min(p[x], q[x]) > 0.0
    )
    assert theory.agreement(p, q) == pytest.approx(by_definition)
    with np.errstate(divide="ignore"):
        rows = np.log(np.stack([p, q])).astype(np.float32)
    seeds = 20_000
    shapers = (Shaper(SamplingParams(temperature=1.0, seed=seed)) for seed in range(seeds))
    equal = sum(shaper.choice(rows[0], History()) == shaper.choice(rows[1], History()) for shaper in shapers)
    assert equal / seeds == pytest.approx(by_definition, abs=0.01)


@pytest.mark.parametrize("seed", range(5))
def test_agreement_lies_between_its_bounds(seed: int) -> None:
    """At most sum of min(p, q) = 1 - TV, at least (1 - TV) / (1 + TV), arXiv 2408.07978; all one for equal laws."""
    p, q = laws(seed, 1000)
    common = overlap(p, q)
    assert common / (2.0 - common) < theory.agreement(p, q) < common
    assert theory.agreement(p, p) == pytest.approx(1.0) == overlap(p, p)
    assert theory.coincidence(p, q) < common


@pytest.mark.parametrize("gamma", [1, 2, 3])
def test_reach_adds_up_to_what_the_rules_accept(gamma: int) -> None:
    p, q = random_law(4), random_law(54)
    for judge, reach in ((by_rejection, theory.rejection_reach), (by_block, theory.block_reach)):
        expected = 0.0
        for draft in itertools.product(range(3), repeat=gamma):
            expected += probability(q, draft) * sum(reach(ratios(p, q, draft)))
        outcomes = outcomes_of(partial(chain_round(judge, p, q, gamma), ()))
        assert sum((len(tokens) - 1) * mass for tokens, mass in outcomes.items()) == pytest.approx(expected)


def probability(law: Law, draft: tuple[int, ...]) -> float:
    return float(np.prod([law(draft[:index])[token] for index, token in enumerate(draft)]))


def ratios(p: Law, q: Law, draft: tuple[int, ...]) -> list[float]:
    return [p(draft[:index])[token] / q(draft[:index])[token] for index, token in enumerate(draft)]


def make_round(rule: str, accepted: int, tested: int, ratio: Sequence[float]) -> RoundOfDraft:
    count = len(ratio)
    return RoundOfDraft(
        rule=rule,
        prompt="chat-1",
        accepted=accepted,
        tested=tested,
        ratios=list(ratio),
        overlap=[0.8, 0.6][:count],
        agreement=[0.7, 0.5][:count],
        coincidence=[0.4, 0.2][:count],
    )


def test_expectations_count_the_tokens_that_were_tested() -> None:
    seeded = [make_round("seeded", 0, 1, (1.0, 1.0)), make_round("seeded", 2, 2, (1.0, 1.0))]
    acceptance, per_pass = expectation("seeded", seeded)
    assert acceptance == pytest.approx((0.7 + 0.7 + 0.5) / 3)
    assert per_pass is None
    rounds = [make_round("rejection", 0, 1, (0.5, 2.0)), make_round("rejection", 1, 2, (1.0, 0.25))]
    assert expectation("rejection", rounds) == pytest.approx((2.2 / 3, 1.0 + (0.5 + 0.5 + 1.0 + 0.25) / 2))
    accepted = 0.5 + 1.0 + 1.0 + 0.25
    assert expectation("block", rounds) == pytest.approx((accepted / (accepted + 0.75), 1.0 + accepted / 2))


def test_tables_hold_measured_and_expected_values() -> None:
    text = tables([make_round("rejection", 0, 1, (0.5, 2.0)), make_round("block", 1, 2, (1.0, 0.25))])
    assert "| rejection | 1 | 1 | 0.000 ± 0.000 | 0.800 | 1.00 | 2.00 |" in text
    assert "| block | 1 | 2 | 0.500 ± 0.693 | 0.625 | 2.00 | 2.25 |" in text
    assert "agreement of p and q over the first rows of all 2 drafts: 0.700" in text
    assert "rejection accepts 1.125 tokens, a block 1.375: +22.2%, tokens per pass +11.8%" in text
