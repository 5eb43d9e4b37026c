"""The C++ sampler against a NumPy reading of each definition."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from borrador import _native
from borrador.errors import ModelError
from borrador.sampling.shaping import Distribution, History, Shaper, most_likely
from borrador.types import Float32Array, Float64Array, Int32Array, SamplingParams, UInt32Array

GOLDEN = 0x9E3779B97F4A7C15
MASK = 2**64 - 1


def make_row(seed: int, size: int, spread: float = 3.0) -> Float32Array:
    return (np.random.default_rng(seed).normal(size=size) * spread).astype(np.float32)


def read_shape(row: Float32Array, params: SamplingParams) -> tuple[Int32Array, Float64Array]:
    """The definition: top-k, top-p, min-p at temperature 1, then the temperature."""
    logits = row.astype(np.float64)
    order = np.lexsort((np.arange(len(row)), -logits))
    if 0 < params.top_k < len(row):
        order = order[: params.top_k]
    if params.top_p < 1.0:
        mass = np.cumsum(np.exp(logits[order] - logits.max()))
        order = order[: int(np.searchsorted(mass, params.top_p * mass[-1])) + 1]
    if params.min_p > 0.0:
        order = order[logits[order] >= logits.max() + math.log(params.min_p)]
    kept = np.sort(order).astype(np.int32)
    weights = np.exp((logits[kept] - logits.max()) / params.temperature)
    return kept, weights / weights.sum()


def shape(row: Float32Array, params: SamplingParams) -> Distribution:
    return Shaper(params).law(row, History())


def seeded_choice(row: Float32Array, params: SamplingParams, position: int) -> int:
    return Shaper(params).choice(row, History(range(position)))


def mix(z: int) -> int:
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
    return z ^ (z >> 31)


def read_uniform(seed: int, position: int, token: int) -> float:
    state = mix((mix((seed + GOLDEN) & MASK) + position * GOLDEN) & MASK)
    bits = mix((state + (token + 1) * GOLDEN) & MASK)
    return ((bits >> 12) + 0.5) * 2.0**-52


SHAPES = st.builds(
    SamplingParams,
    temperature=st.sampled_from([0.2, 0.7, 1.0, 1.9]),
    top_k=st.sampled_from([0, 1, 2, 40, 399, 5000]),
    top_p=st.sampled_from([1.0, 0.999, 0.9, 0.3]),
    min_p=st.sampled_from([0.0, 0.01, 0.3]),
    seed=st.integers(0, MASK),
)
SIZES = st.sampled_from([1, 2, 15, 17, 511, 513, 4000])


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 10_000), size=SIZES, params=SHAPES)
def test_shaped_distribution_follows_its_definition(seed: int, size: int, params: SamplingParams) -> None:
    row = make_row(seed, size)
    law = shape(row, params)
    ids, probabilities = read_shape(row, params)
    assert np.array_equal(np.arange(size) if law.ids is None else law.ids, ids)
    np.testing.assert_allclose(law.probabilities, probabilities, rtol=3e-5, atol=1e-37)


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 10_000), size=SIZES, params=SHAPES, position=st.integers(0, 2**20))
def test_seeded_choice_wins_the_gumbel_race_over_the_shaped_distribution(
    seed: int, size: int, params: SamplingParams, position: int
) -> None:
    row = make_row(seed, size)
    ids, _ = read_shape(row, params)
    assert params.seed is not None
    noise = np.array([-math.log(-math.log(read_uniform(params.seed, position, int(token)))) for token in ids])
    scores = (row[ids].astype(np.float64) - float(row.max())) / params.temperature + noise
    assert seeded_choice(row, params, position) == ids[np.argmax(scores)]


def test_noise_has_the_documented_values() -> None:
    for seed, position, token in [(0, 0, 0), (7, 3, 151_935), (MASK, 2**40, 1)]:
        assert _native.uniform(seed, position, token) == read_uniform(seed, position, token)


def test_seeded_choices_follow_the_distribution() -> None:
    law = np.array([0.5, 0.3, 0.15, 0.05])
    row = np.log(law).astype(np.float32)
    draws = 40_000
    counts = np.zeros(4)
    for position in range(draws):
        counts[seeded_choice(row, SamplingParams(temperature=1.0, seed=11), position)] += 1
    assert ((counts - draws * law) ** 2 / (draws * law)).sum() < 16.3  # chi-square, 3 degrees, p = 0.001


def test_argmax_takes_the_lowest_id_of_equals() -> None:
    row = np.zeros(3000, np.float32)
    row[[700, 1400, 2999]] = 1.0
    assert most_likely(row) == 700


@pytest.mark.parametrize("size", [1, 16, 511, 512, 513, 151_936])
def test_argmax_finds_the_largest_logit_wherever_it_stands(size: int) -> None:
    for place in {0, size // 2, size - 1}:
        row = make_row(size, size)
        row[place] = 100.0
        assert most_likely(row) == place


@pytest.mark.parametrize("k", [0, 1, 5, 100, 900, 2000])
def test_top_k_is_sorted_and_breaks_ties_by_id(k: int) -> None:
    row = np.round(make_row(4, 1000)).astype(np.float32)
    ids, logits = _native.top_k(row, k)
    expected = np.lexsort((np.arange(1000), -row))[:k]
    assert ids.tolist() == expected.tolist()
    assert logits.tolist() == row[expected].tolist()


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 1000), size=SIZES, u=st.floats(0.0, 1.0, exclude_max=True))
def test_pick_inverts_the_running_sum_and_never_takes_a_weight_of_zero(seed: int, size: int, u: float) -> None:
    generator = np.random.default_rng(seed)
    weights = (generator.random(size) * (generator.random(size) < 0.5)).astype(np.float32)
    weights[generator.integers(size)] = 0.7
    running = np.cumsum(weights, dtype=np.float64)
    index = _native.pick(weights, u)
    assert weights[index] > 0
    below = running[index] - weights[index]
    assert below - 1e-6 <= u * running[-1] <= running[index] + 1e-6


def test_nan_is_never_chosen() -> None:
    row = np.array([np.nan, 1.0, np.nan, -2.0, -np.inf], np.float32)
    sampling = SamplingParams(temperature=1.0, seed=1)
    assert most_likely(row) == 1
    assert {seeded_choice(row, sampling, position) for position in range(200)} == {1, 3}
    assert shape(row, sampling).probability(0) == 0.0
    assert shape(row, sampling).probability(4) == 0.0


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_rows_without_a_finite_maximum_are_a_model_error(value: float) -> None:
    row = np.array([value, value], np.float32)
    for choose in (
        lambda: most_likely(row),
        lambda: shape(row, SamplingParams(temperature=1.0)),
        lambda: seeded_choice(row, SamplingParams(temperature=1.0, seed=1), 0),
    ):
        with pytest.raises(ModelError, match="not finite"):
            choose()


@pytest.mark.parametrize("temperature", [1e-320, 1e-30, 1e-7])
def test_tiny_temperatures_are_greedy_and_not_a_division_by_zero(temperature: float) -> None:
    row = make_row(1, 1000)
    params = SamplingParams(temperature=temperature, seed=3)
    assert seeded_choice(row, params, 0) == row.argmax()
    assert shape(row, params).probability(int(row.argmax())) == 1.0


def test_writing_a_distribution_fills_in_zeros() -> None:
    law = shape(make_row(2, 6), SamplingParams(temperature=1.0, top_k=2))
    assert law.ids is not None
    dense = np.full(8, np.nan, np.float32)
    law.write(dense)
    assert np.flatnonzero(dense).tolist() == law.ids.tolist()
    assert [law.probability(token) for token in range(6)] == dense[:6].tolist()
    whole = shape(make_row(2, 6), SamplingParams(temperature=1.0))
    whole.write(dense)
    assert dense.tolist() == [*whole.probabilities.tolist(), 0.0, 0.0]


class EveryThird:
    """Allows tokens 0, 3, 6 and so on, but only below the path (1, 2)."""

    def __init__(self, size: int) -> None:
        self.allowed = np.arange(size) % 3 == 0
        bits = np.zeros(-(-size // 32) * 32, np.uint8)
        bits[:size] = self.allowed
        self.words = np.packbits(bits, bitorder="little").view(np.uint32)

    def mask(self, history: History, /) -> UInt32Array | None:
        return self.words if tuple(history.path) == (1, 2) else None


@pytest.mark.parametrize("size", [1, 31, 33, 1000])
def test_masks_act_as_if_the_other_tokens_did_not_exist(size: int) -> None:
    row, masks = make_row(size, size), EveryThird(size)
    rest = np.where(masks.allowed, row, -np.inf).astype(np.float32)
    below = History([5], (1, 2))
    for params in (SamplingParams(), SamplingParams(temperature=0.8, top_p=0.9, seed=4)):
        free, masked = Shaper(params), Shaper(params, masks=masks)
        assert masked.choice(row, below) == free.choice(rest, below)
        assert masked.choice(row, History([5])) == free.choice(row, History([5]))
    params = SamplingParams(temperature=0.8, top_k=7)
    expected, law = Shaper(params).law(rest, below), Shaper(params, masks=masks).law(row, below)
    assert [law.probability(i) for i in range(size)] == [expected.probability(i) for i in range(size)]


def test_without_a_seed_there_is_no_choice() -> None:
    with pytest.raises(ValueError, match="no choice"):
        Shaper(SamplingParams(temperature=1.0)).choice(make_row(1, 5), History())
