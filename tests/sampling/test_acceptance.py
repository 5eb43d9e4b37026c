"""Acceptance rules by exact enumeration: the law of what is emitted, not a sample of it."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from borrador.sampling import acceptance
from borrador.sampling.acceptance import accept_by_rejection, accept_choices, residual
from borrador.sampling.shaping import Distribution
from borrador.types import Float32Array, Verdict

Law = Callable[[tuple[int, ...]], Float32Array]
VOCABULARY = 3


class Crossroads:
    """Noise that walks through every possible sequence of decisions, with its probability."""

    def __init__(self, decisions: Sequence[int]) -> None:
        self.taken: list[int] = []
        self.options: list[int] = []
        self.probability = 1.0
        self._decisions = decisions

    def _decide(self, weights: Sequence[float]) -> int:
        place = len(self.taken)
        choice = self._decisions[place] if place < len(self._decisions) else 0
        self.taken.append(choice)
        self.options.append(len(weights))
        self.probability *= weights[choice]
        return choice

    def accepts(self, probability: float) -> bool:
        certain = min(1.0, probability)
        return self._decide([certain, 1.0 - certain]) == 0

    def pick(self, weights: Float32Array) -> int:
        exact = weights.astype(np.float64)
        return self._decide((exact / exact.sum()).tolist())


def all_outcomes(run: Callable[[Crossroads], Verdict]) -> list[tuple[float, Verdict]]:
    outcomes = []
    pending: list[list[int]] = [[]]
    while pending:
        prefix = pending.pop()
        noise = Crossroads(prefix)
        verdict = run(noise)
        outcomes.append((noise.probability, verdict))
        for place in range(len(prefix), len(noise.taken)):
            pending.extend([*noise.taken[:place], other] for other in range(1, noise.options[place]))
    return outcomes


def make_law(seed: int, sharpness: float = 1.0) -> Law:
    def law(prefix: tuple[int, ...]) -> Float32Array:
        weights = np.exp(np.random.default_rng((seed, 99, *prefix)).normal(size=VOCABULARY) * sharpness)
        return np.asarray(weights / weights.sum(), np.float32)

    return law


def distribution(probabilities: Float32Array, sparse: bool) -> Distribution:
    if not sparse:
        return Distribution(None, probabilities)
    ids = np.flatnonzero(probabilities).astype(np.int32)
    return Distribution(ids, probabilities[ids])


def round_law(p: Law, draft: tuple[int, ...], q: Float32Array, *, sparse: bool) -> list[tuple[float, Verdict]]:
    rows = [distribution(p(draft[:index]), sparse) for index in range(len(draft) + 1)]
    return all_outcomes(lambda noise: accept_by_rejection(draft, q, rows.__getitem__, noise))


def after(law: Law, context: tuple[int, ...]) -> Law:
    return lambda prefix: law(context + prefix)


def emitted_law(p: Law, q: Law, gamma: int, length: int, *, sparse: bool = False) -> dict[tuple[int, ...], float]:
    """The exact law of the first `length` tokens of rounds with γ drafted tokens, one round after another."""
    result: dict[tuple[int, ...], float] = defaultdict(float)
    pending: list[tuple[tuple[int, ...], float]] = [((), 1.0)]
    while pending:
        context, weight = pending.pop()
        if len(context) >= length:
            result[context[:length]] += weight
            continue
        for draft in itertools.product(range(VOCABULARY), repeat=gamma):
            laws = np.stack([q(context + draft[:index]) for index in range(gamma)])
            drawn = float(np.prod(laws[range(gamma), draft].astype(np.float64)))
            for probability, verdict in round_law(after(p, context), draft, laws, sparse=sparse):
                tokens = (*(draft[index] for index in verdict.path), verdict.next_token)
                if drawn * probability > 0.0:
                    pending.append((context + tokens, weight * drawn * probability))
    return result


def plain_law(p: Law, length: int) -> dict[tuple[int, ...], float]:
    return {
        tokens: float(np.prod([float(p(tokens[:index])[token]) for index, token in enumerate(tokens)]))
        for tokens in itertools.product(range(VOCABULARY), repeat=length)
    }


def distance(first: dict[tuple[int, ...], float], second: dict[tuple[int, ...], float]) -> float:
    return max(abs(first.get(key, 0.0) - second.get(key, 0.0)) for key in first.keys() | second.keys())


@pytest.mark.parametrize("gamma", [1, 2])
@pytest.mark.parametrize("length", [1, 2, 3])
@pytest.mark.parametrize("seed", [0, 1])
def test_rejection_emits_exactly_the_targets_law(gamma: int, length: int, seed: int) -> None:
    p, q = make_law(seed), make_law(seed + 50)
    assert distance(emitted_law(p, q, gamma, length), plain_law(p, length)) < 1e-6


def test_rejection_is_exact_for_truncated_laws_with_other_support() -> None:
    def p(prefix: tuple[int, ...]) -> Float32Array:
        return np.array([0.0, 0.25, 0.75] if len(prefix) % 2 else [0.5, 0.5, 0.0], np.float32)

    def q(prefix: tuple[int, ...]) -> Float32Array:
        return np.array([0.4, 0.0, 0.6], np.float32)

    assert distance(emitted_law(p, q, 2, 3, sparse=True), plain_law(p, 3)) < 1e-6


def test_resampling_from_p_instead_of_the_residual_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acceptance, "residual", lambda p, q: p.probabilities)
    p, q = make_law(0), make_law(50)
    assert distance(emitted_law(p, q, 1, 1), plain_law(p, 1)) > 0.01


def test_a_recorded_q_that_was_not_sampled_from_is_noticed() -> None:
    p, q = make_law(0), make_law(50)
    wrong = make_law(51)
    law: dict[tuple[int, ...], float] = defaultdict(float)
    for token in range(VOCABULARY):

        def run(noise: Crossroads, token: int = token) -> Verdict:
            return accept_by_rejection([token], wrong(())[None], lambda row: Distribution(None, p(())), noise)

        for probability, verdict in all_outcomes(run):
            law[(token if verdict.path else verdict.next_token,)] += float(q(())[token]) * probability
    assert distance(law, plain_law(p, 1)) > 0.01


def test_noise_shared_between_draft_and_target_is_noticed() -> None:
    """The draft and the correction from one uniform variate each: what the rule forbids is measurably wrong."""
    p = np.array([0.5, 0.3, 0.2], np.float32)
    q = np.array([0.2, 0.3, 0.5], np.float32)
    steps = 3000
    counts = np.zeros(VOCABULARY)
    for step in range(steps):
        u = (step + 0.5) / steps

        class Shared:
            def accepts(self, probability: float, u: float = u) -> bool:
                return u < probability

            def pick(self, weights: Float32Array, u: float = u) -> int:
                return int(np.searchsorted(np.cumsum(weights / weights.sum()), u, side="right"))

        drafted = int(np.searchsorted(np.cumsum(q), u, side="right"))
        verdict = accept_by_rejection([drafted], q[None], lambda row: Distribution(None, p), Shared())
        counts[drafted if verdict.path else verdict.next_token] += 1
    assert np.abs(counts / steps - p).max() > 0.05


def test_equal_laws_accept_everything() -> None:
    p = make_law(3)
    q = np.stack([p(()), p((1,))])
    outcomes = all_outcomes(
        lambda noise: accept_by_rejection([1, 2], q, lambda row: Distribution(None, p((1, 2)[:row])), noise)
    )
    likely = [verdict for probability, verdict in outcomes if probability > 0.0]
    assert all(verdict.path == (0, 1) and verdict.bonus and verdict.tested == 2 for verdict in likely)


def test_an_empty_residual_falls_back_to_p() -> None:
    law = np.array([0.5, 0.25, 0.25], np.float32)
    assert residual(Distribution(None, law), law).tolist() == law.tolist()


def test_a_token_that_q_excludes_is_refused() -> None:
    p = np.array([1.0, 0.0, 0.0], np.float32)
    q = np.array([[0.0, 1.0, 0.0]], np.float32)
    noise = Crossroads([])
    assert accept_by_rejection([0], q, lambda row: Distribution(None, p), noise) == Verdict((), 0, False, 1)


def chosen(*tokens: int) -> Callable[[int], int]:
    return lambda row: tokens[row]


@pytest.mark.parametrize(
    ("tokens", "choices", "verdict"),
    [
        ((), (7,), Verdict((), 7, False, 0)),
        ((1, 2, 3), (1, 2, 3, 4), Verdict((0, 1, 2), 4, True, 3)),
        ((1, 2, 3), (1, 9, 3, 4), Verdict((0,), 9, False, 2)),
        ((1, 2, 3), (9, 2, 3, 4), Verdict((), 9, False, 1)),
        ((1, 2, 3), (1, 2, 9, 4), Verdict((0, 1), 9, False, 3)),
    ],
)
def test_chains_are_followed_up_to_the_first_miss(
    tokens: tuple[int, ...], choices: tuple[int, ...], verdict: Verdict
) -> None:
    assert accept_choices(tokens, None, chosen(*choices)) == verdict


def test_trees_are_followed_along_the_matching_branch() -> None:
    tokens, parents = (1, 2, 3, 4, 5), (-1, -1, 1, 1, 3)
    assert accept_choices(tokens, parents, chosen(2, 0, 4, 0, 5, 8)) == Verdict((1, 3, 4), 8, True, 3)
    assert accept_choices(tokens, parents, chosen(2, 0, 9, 0, 5, 8)) == Verdict((1,), 9, False, 2)
    assert accept_choices(tokens, parents, chosen(1, 6, 9, 0, 5, 8)) == Verdict((0,), 6, True, 1)


def test_rows_behind_the_first_miss_are_never_looked_at() -> None:
    seen: list[int] = []

    def choose(row: int) -> int:
        seen.append(row)
        return (1, 9, 3, 4)[row]

    accept_choices((1, 2, 3), None, choose)
    assert seen == [0, 1]
