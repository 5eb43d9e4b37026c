"""The C++ sampler against a NumPy reading of each definition."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sampling.masks import NothingForced

from borrador import _native
from borrador.errors import ModelError, UsageError
from borrador.sampling.history import TokenWindow
from borrador.sampling.logprobs import token_logprobs
from borrador.sampling.shaping import Distribution, History, Shaper, native_shape
from borrador.types import Float32Array, Float64Array, Int32Array, SamplingParams, TokenLogprobs, UInt32Array

GOLDEN = 0x9E3779B97F4A7C15
MASK = 2**64 - 1
ISAS = _native.available_isas()


def make_row(seed: int, size: int, spread: float = 3.0) -> Float32Array:
    return (np.random.default_rng(seed).normal(size=size) * spread).astype(np.float32)


def greedy_choice(row: Float32Array) -> int:
    return Shaper(SamplingParams()).choice(row, History(()))


def read_edits(row: Float32Array, params: SamplingParams, history: Sequence[int]) -> Float32Array:
    """The definition: bias, allowed and banned tokens, then the penalties, token by token."""
    row = row.copy()
    for token, bias in params.logit_bias.items():
        row[token] += np.float32(bias)
    for token in range(len(row)):
        if params.allowed_token_ids is not None and token not in params.allowed_token_ids:
            row[token] = -np.inf
    row[list(params.banned_token_ids)] = -np.inf
    window = history if params.penalty_window < 0 else history[max(len(history) - params.penalty_window, 0) :]
    for token, count in Counter(window).items():
        repetition = np.float32(params.repetition_penalty)
        row[token] = row[token] / repetition if row[token] > 0 else row[token] * repetition
        row[token] -= np.float32(count) * np.float32(params.frequency_penalty) + np.float32(params.presence_penalty)
    return row


def read_shape(row: Float32Array, params: SamplingParams) -> tuple[Int32Array, Float64Array]:
    """The definition: top-k, typical-p, top-p, min-p, each at temperature 1 on what is left, then the temperature."""
    logits = row.astype(np.float64)
    order = np.lexsort((np.arange(len(row)), -logits))
    order = order[np.isfinite(logits[order])]
    if params.top_k > 0:
        order = order[: params.top_k]
    if params.typical_p < 1.0:
        p = softmax(logits[order])
        information = -np.log(p)
        by_typicality = np.lexsort((order, np.abs(information - (p * information).sum())))
        reached = int(np.searchsorted(np.cumsum(p[by_typicality]), params.typical_p))
        order = order[np.sort(by_typicality[: reached + 1])]
    if params.top_p < 1.0:
        order = order[: int(np.searchsorted(np.cumsum(softmax(logits[order])), params.top_p)) + 1]
    if params.min_p > 0.0:
        order = order[logits[order] >= logits[order].max() + math.log(params.min_p)]
    kept = np.sort(order).astype(np.int32)
    return kept, softmax(logits[kept] / params.temperature)


def softmax(logits: Float64Array) -> Float64Array:
    weights = np.exp(logits - logits.max())
    result: Float64Array = weights / weights.sum()
    return result


def shape(row: Float32Array, params: SamplingParams, history: Sequence[int] = ()) -> Distribution:
    return Shaper(params).law(row, History(history))


def seeded_choice(row: Float32Array, params: SamplingParams, position: int) -> int:
    return Shaper(params).choice(row, History(range(position)))


def mix(z: int) -> int:
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
    return z ^ (z >> 31)


def read_uniform(seed: int, position: int, token: int) -> float:
    """The definition in noise.h."""
    state = mix((mix((seed + GOLDEN) & MASK) + position * GOLDEN) & MASK)
    keys = mix((state + (2**32 + 1) * GOLDEN) & MASK)
    x = (token + (keys >> 32)) % 2**32
    x = (x ^ (x >> 17)) * 0xED5AD4BB % 2**32 ^ keys % 2**32
    x = (x ^ (x >> 11)) * 0xAC4C1B51 % 2**32
    x = (x ^ (x >> 15)) * 0x31848BAB % 2**32
    x ^= x >> 14
    low = mix((state + (token + 1) * GOLDEN) & MASK) >> 44
    return ((x << 20 | low) + 0.5) * 2.0**-52


def read_noise(seed: int, position: int, tokens: Int32Array) -> Float64Array:
    return np.array([-math.log(-math.log(read_uniform(seed, position, int(token)))) for token in tokens])


SHAPES = st.builds(
    SamplingParams,
    temperature=st.sampled_from([0.2, 0.7, 1.0, 1.9]),
    top_k=st.sampled_from([0, 0, 1, 2, 40, 399, 5000]),
    typical_p=st.sampled_from([1.0, 1.0, 0.95, 0.5, 0.1]),
    top_p=st.sampled_from([1.0, 0.999, 0.9, 0.3]),
    min_p=st.sampled_from([0.0, 0.01, 0.3]),
    seed=st.integers(0, MASK),
)
SIZES = st.sampled_from([1, 2, 15, 17, 63, 65, 511, 1025, 4000])
SPREADS = st.sampled_from([0.05, 1.0, 3.0, 9.0])


@settings(max_examples=200)
@given(seed=st.integers(0, 10_000), size=SIZES, spread=SPREADS, params=SHAPES)
def test_shaped_distribution_follows_its_definition(
    seed: int, size: int, spread: float, params: SamplingParams
) -> None:
    row = make_row(seed, size, spread)
    law = shape(row, params)
    ids, probabilities = read_shape(row, params)
    assert np.array_equal(np.arange(size) if law.ids is None else law.ids, ids)
    np.testing.assert_allclose(law.probabilities, probabilities, rtol=3e-5, atol=1e-37)


@settings(max_examples=200)
@given(seed=st.integers(0, 10_000), size=SIZES, params=SHAPES, position=st.integers(0, 2**20))
def test_seeded_choice_wins_the_gumbel_race_over_the_shaped_distribution(
    seed: int, size: int, params: SamplingParams, position: int
) -> None:
    row = make_row(seed, size)
    ids, _ = read_shape(row, params)
    assert params.seed is not None
    scores = row[ids].astype(np.float64) / params.temperature + read_noise(params.seed, position, ids)
    assert seeded_choice(row, params, position) == ids[np.argmax(scores)]


EDITS = st.fixed_dictionaries(
    {
        "repetition_penalty": st.sampled_from([1.0, 1.3, 0.7]),
        "presence_penalty": st.sampled_from([0.0, 0.6, -1.5]),
        "frequency_penalty": st.sampled_from([0.0, 0.4, -0.3]),
        "penalty_window": st.sampled_from([-1, 0, 1, 7, 64]),
        "logit_bias": st.dictionaries(st.integers(0, 39), st.floats(-100, 100, width=32), max_size=4),
        "banned_token_ids": st.lists(st.integers(0, 39), max_size=4),
        "allowed_token_ids": st.none() | st.lists(st.integers(0, 39), min_size=9, max_size=30, unique=True),
    }
)


@settings(max_examples=200)
@given(
    seed=st.integers(0, 10_000),
    edits=EDITS,
    context=st.lists(st.integers(0, 39), max_size=90),
    path=st.lists(st.integers(0, 39), max_size=9),
    top_p=st.sampled_from([1.0, 0.8]),
)
def test_edits_follow_their_definition_on_every_rows_own_history(
    seed: int, edits: dict[str, Any], context: list[int], path: list[int], top_p: float
) -> None:
    row = make_row(seed, 40)
    history = History(context, path)
    params = SamplingParams(temperature=0.9, top_p=top_p, seed=seed, **edits)
    edited = read_edits(row, params, [*context, *path])
    ids, probabilities = read_shape(edited, params)
    law = Shaper(params).law(row, history)
    for token in range(40):
        expected = float(probabilities[list(ids).index(token)]) if token in ids else 0.0
        assert law.probability(token) == pytest.approx(expected, rel=3e-5, abs=1e-37)
    scores = edited[ids].astype(np.float64) / 0.9 + read_noise(seed, history.position, ids)
    assert Shaper(params).choice(row, history) == ids[np.argmax(scores)]
    assert Shaper(SamplingParams(**edits)).choice(row, history) == edited.argmax()


def test_the_window_follows_contexts_that_grow_and_are_cut_back() -> None:
    window, context = TokenWindow(5), [1, 2, 3]
    assert window.before(History(context, [4])).tolist() == [1, 2, 3, 4]
    context.extend([5, 6, 7])
    assert window.before(History(context, [8])).tolist() == [3, 5, 6, 7, 8]
    del context[4:]
    assert window.before(History(context, ())).tolist() == [1, 2, 3, 5]
    assert window.before(History([9], ())).tolist() == [9]
    assert TokenWindow(-1).before(History(list(range(1000)), (7, 8))).tolist() == [*range(1000), 7, 8]


@pytest.mark.parametrize("seed", [None, 3])
def test_end_tokens_are_banned_exactly_until_the_answer_has_its_least_length(seed: int | None) -> None:
    row = np.array([1.0, 9.0, 2.0, 8.0], np.float32)
    params = SamplingParams(temperature=0.0 if seed is None else 0.01, min_tokens=2, seed=seed)
    shaper = Shaper(params, prompt_length=3, end_ids={1, 3})
    for context, path, token in (([0] * 3, (), 2), ([0] * 3, (0,), 2), ([0] * 3, (0, 0), 1), ([0] * 4, (), 2)):
        assert shaper.choice(row, History(context, path)) == token
    assert not shaper.takes_best
    assert Shaper(SamplingParams(), prompt_length=3, end_ids={1, 3}).takes_best


def test_greedy_decoding_takes_the_most_likely_of_what_typical_p_leaves() -> None:
    row = np.log(np.array([0.4, 0.2, 0.2, 0.2], np.float32))
    # Information 0.92 and 1.61, its mean 1.33: the three are closer to it than the most likely one.
    assert Shaper(SamplingParams(typical_p=0.5)).choice(row, History()) == 1
    assert Shaper(SamplingParams()).choice(row, History()) == 0


@pytest.mark.parametrize(("params", "kept"), [({"top_p": 0.5}, 2), ({"typical_p": 0.75}, 3), ({"top_p": 0.5001}, 3)])
def test_no_token_is_kept_beyond_those_that_reach_the_share_exactly(params: dict[str, float], kept: int) -> None:
    law = Shaper(SamplingParams(temperature=1.0, **params)).law(np.zeros(4, np.float32), History())  # type: ignore[arg-type]
    assert law.ids is not None
    assert law.ids.tolist() == list(range(kept))


@pytest.mark.parametrize(
    "params",
    [
        SamplingParams(temperature=0.1),
        SamplingParams(temperature=0.1, seed=1),
        SamplingParams(typical_p=0.9),
        SamplingParams(repetition_penalty=1.1),
        SamplingParams(presence_penalty=0.1),
        SamplingParams(frequency_penalty=-0.1, penalty_window=-1),
        SamplingParams(logit_bias={2: 0.5}),
        SamplingParams(banned_token_ids=[2]),
        SamplingParams(allowed_token_ids=[2, 3]),
    ],
)
def test_what_can_choose_another_than_the_most_likely_token_needs_more_of_a_row_than_it(params: SamplingParams) -> None:
    assert not Shaper(params).takes_best


def test_steps_that_never_drop_the_most_likely_token_need_nothing_more_of_a_row() -> None:
    params = SamplingParams(top_k=1, top_p=0.1, min_p=0.9, repetition_penalty=1.5, penalty_window=0, min_tokens=3)
    assert Shaper(params).takes_best
    assert not Shaper(params, masks=EveryThird(8)).takes_best


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("size", [5, 1000, 70_001])
def test_every_instruction_set_gives_the_same_bits(isa: str, size: int) -> None:
    none = np.empty(0, np.int32)
    for number, params in enumerate(
        (
            SamplingParams(temperature=1.1),
            SamplingParams(temperature=0.6, top_p=0.97),
            SamplingParams(temperature=1.0, typical_p=0.9, min_p=0.001),
            SamplingParams(temperature=0.8, top_k=300, top_p=0.9, repetition_penalty=1.2),
        )
    ):
        row = make_row(number, size, 2.5)
        row[:: size // 4] = [np.nan, -np.inf, 3.0, 4.0, 5.0][: len(row[:: size // 4])]
        arguments = [(row, native_shape(params, name), none, none, None) for name in (isa, "portable")]
        (ids, law), (portable_ids, portable_law) = (_native.shape(*each) for each in arguments)
        assert ids.tobytes() == portable_ids.tobytes()
        assert law.tobytes() == portable_law.tobytes()
        for position in range(20):
            choices = {_native.pick_seeded(*each, number, position) for each in arguments}
            assert len(choices) == 1


def test_a_mask_that_is_too_short_is_an_error() -> None:
    none = np.empty(0, np.int32)
    with pytest.raises(IndexError, match="a bit for every logit"):
        _native.pick_likeliest(make_row(1, 33), native_shape(SamplingParams()), none, none, np.ones(1, np.uint32))


def test_a_row_of_which_nothing_is_left_is_no_damaged_model() -> None:
    shaper = Shaper(SamplingParams(allowed_token_ids=[2, 3], min_tokens=1), end_ids={2, 3})
    with pytest.raises(UsageError, match="one token must be left to choose, and none is at position 0"):
        shaper.choice(make_row(1, 8), History())


@pytest.mark.parametrize("size", [1, 100, 5000])
def test_log_probabilities_are_those_at_temperature_one(size: int) -> None:
    row = make_row(size, size)
    expected = row.astype(np.float64) - np.log(np.exp(row.astype(np.float64)).sum())
    for token in (0, size // 2, size - 1):
        found = token_logprobs(row, token, 3)
        assert found.token_id == token
        assert found.logprob == pytest.approx(expected[token], abs=2e-6)
        assert [other for other, _ in found.top] == np.argsort(-row, kind="stable")[:3].tolist()
        assert [value for _, value in found.top] == pytest.approx(np.sort(expected)[::-1][:3], abs=2e-6)
    row[0] = -np.inf
    if size > 1:
        assert token_logprobs(row, 0, 0) == TokenLogprobs(0, -math.inf, ())


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


def test_greedy_choices_take_the_lowest_id_of_equals() -> None:
    row = np.zeros(3000, np.float32)
    row[[700, 1400, 2999]] = 1.0
    assert greedy_choice(row) == 700


@pytest.mark.parametrize("size", [1, 16, 511, 512, 513, 151_936])
def test_greedy_choices_find_the_largest_logit_wherever_it_stands(size: int) -> None:
    for place in {0, size // 2, size - 1}:
        row = make_row(size, size)
        row[place] = 100.0
        assert greedy_choice(row) == place


@pytest.mark.parametrize("k", [0, 1, 5, 100, 900, 2000])
def test_top_k_is_sorted_and_breaks_ties_by_id(k: int) -> None:
    row = np.round(make_row(4, 1000)).astype(np.float32)
    ids, logits = _native.top_k(row, k)
    expected = np.lexsort((np.arange(1000), -row))[:k]
    assert ids.tolist() == expected.tolist()
    assert logits.tolist() == row[expected].tolist()


@settings(max_examples=100)
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
    assert greedy_choice(row) == 1
    assert {seeded_choice(row, sampling, position) for position in range(200)} == {1, 3}
    assert shape(row, sampling).probability(0) == 0.0
    assert shape(row, sampling).probability(4) == 0.0


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_rows_without_a_finite_maximum_are_a_model_error(value: float) -> None:
    row = np.array([value, value], np.float32)
    for choose in (
        lambda: greedy_choice(row),
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


class EveryThird(NothingForced):
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
    with pytest.raises(TypeError, match="no choice"):
        Shaper(SamplingParams(temperature=1.0)).choice(make_row(1, 5), History())
