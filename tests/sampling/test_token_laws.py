"""The law of the written token by drawing it, with the product's own noise, shaping and arithmetic in float32."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from borrador.sampling import acceptance
from borrador.sampling.acceptance import accept_by_block, accept_by_rejection, accept_choices
from borrador.sampling.noise import FreshNoise
from borrador.sampling.shaping import Distribution, History, Shaper
from borrador.types import Float32Array, SamplingParams, Verdict

VOCABULARY = 16
PARAMS = SamplingParams(temperature=0.9, top_k=14, top_p=0.98)
SHAPER = Shaper(PARAMS)
Way = Callable[[int, int], list[int]]


def logits(seed: int, rows: int) -> Float32Array:
    return (np.random.default_rng(seed).normal(size=(rows, VOCABULARY)) * 1.5).astype(np.float32)


def dense(law: Distribution) -> Float32Array:
    out = np.empty(VOCABULARY, np.float32)
    law.write(out)
    return out


# The target's rows follow nothing, then each possible first token; the drafter's likewise.
P_ROWS, Q_ROWS = logits(1, VOCABULARY + 1), logits(2, VOCABULARY + 1)
P = [SHAPER.law(row, History()) for row in P_ROWS]
Q = [SHAPER.law(row, History()) for row in Q_ROWS]
Q_DENSE = np.stack([dense(law) for law in Q])
LAW = dense(P[0]).astype(np.float64)


def first_token(tokens: Sequence[int], verdict: Verdict) -> int:
    return tokens[verdict.path[0]] if verdict.path else verdict.next_token


def chains(judge: Callable[..., Verdict], *, certain: bool = False) -> Way:
    """Chains of two drawn tokens."""

    def run(draws: int, seed: int) -> list[int]:
        noise, chance = (FreshNoise(generator) for generator in np.random.default_rng(seed).spawn(2))
        result = []
        for _ in range(draws):
            first = Q[0].token(chance.pick(Q[0].probabilities))
            second = Q[1 + first].token(chance.pick(Q[1 + first].probabilities))
            p = (P[0], P[1 + first], P[1 + second])
            q = None if certain else Q_DENSE[[0, 1 + first]]
            result.append(first_token((first, second), judge((first, second), q, p.__getitem__, noise)))
        return result

    return run


def trees(draws: int, seed: int) -> list[int]:
    """Three siblings drawn without replacement, by the Gumbel-top-k trick."""
    own, generator = np.random.default_rng(seed).spawn(2)
    noise = FreshNoise(own)
    with np.errstate(divide="ignore"):
        log_q = np.log(Q_DENSE[0])
    result = []
    for _ in range(draws):
        tokens = np.argsort(-(log_q + generator.gumbel(size=VOCABULARY)))[:3].tolist()
        rows = (P[0], *(P[1 + token] for token in tokens))
        verdict = accept_by_rejection(tokens, Q_DENSE[[0, 0, 0]], rows.__getitem__, noise, parents=(-1, -1, -1))
        result.append(first_token(tokens, verdict))
    return result


def seeds(draws: int, seed: int) -> list[int]:
    """One seed after the other; the draft is drawn with the noise that the target uses."""
    result = []
    for number in range(draws):
        shaper = Shaper(replace(PARAMS, seed=seed * 10**9 + number))
        drafted = shaper.choice(Q_ROWS[0], History())
        choices = [shaper.choice(row, History()) for row in P_ROWS[:2]]
        result.append(first_token((drafted,), accept_choices((drafted,), None, choices.__getitem__)))
    return result


WAYS: dict[str, Way] = {
    "rejection": chains(accept_by_rejection),
    "block": chains(accept_by_block),
    "certain tokens": chains(accept_by_rejection, certain=True),
    "trees": trees,
    "seeds": seeds,
}


def distance(tokens: list[int]) -> float:
    """Total variation between the tokens' frequencies and the target's law."""
    return float(np.abs(np.bincount(tokens, minlength=VOCABULARY) / len(tokens) - LAW).sum() / 2)


def expected_distance(draws: int) -> float:
    """What it is on average for draws from the law itself."""
    return float(np.sqrt(2 * LAW * (1 - LAW) / (np.pi * draws)).sum() / 2)


@pytest.mark.parametrize("way", WAYS)
def test_the_written_token_follows_the_targets_law(way: str) -> None:
    assert distance(WAYS[way](30_000, 5)) < 1.8 * expected_distance(30_000)


@pytest.mark.long
@pytest.mark.parametrize("way", WAYS)
def test_a_million_written_tokens_are_within_3_thousandths_of_the_targets_law(way: str) -> None:
    assert expected_distance(1_000_000) < 2e-3
    assert distance(WAYS[way](1_000_000, 6)) < 3e-3


@pytest.mark.parametrize("way", ["rejection", "block", "trees"])
def test_a_wrong_residual_is_noticed(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acceptance, "residual", lambda p, q: p)
    assert distance(WAYS[way](30_000, 5)) > 5 * expected_distance(30_000)
