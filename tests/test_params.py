from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from borrador.errors import UsageError
from borrador.params import SamplingParams

NAN, INFINITY = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("given", "stop"), [((), ()), ("END", ("END",)), (["END", "\n"], ("END", "\n")), (("é",), ("é",))]
)
def test_stop_takes_one_string_or_several(given: Any, stop: tuple[str, ...]) -> None:
    assert SamplingParams(stop=given).stop == stop


@pytest.mark.parametrize(
    ("option", "rule"),
    [
        ({"stop": None}, "stop must be text or a list of texts, got None"),
        ({"stop": 5}, "stop must be text or a list of texts, got 5"),
        ({"stop": ["a"] * 1000}, "at most 64 strings, got 1000"),
        ({"stop": ["a" * 257]}, "at most 256 characters, one has 257"),
        ({"stop": [1]}, "must be non-empty text, got 1"),
        ({"stop": ["a", ""]}, "must be non-empty text, got ''"),
        ({"stop": "\ud800"}, "must be valid Unicode"),
        ({"ignore_eos": "yes"}, "ignore_eos must be true or false, got 'yes'"),
        ({"ignore_eos": 1}, "ignore_eos must be true or false, got 1"),
        ({"max_tokens": 0}, "max_tokens must be from 1 to 2147483647, got 0"),
        ({"max_tokens": 10**50}, "max_tokens must be from 1 to 2147483647, got one of more than 40 digits"),
        ({"max_tokens": 1.0}, "max_tokens must be a whole number, got 1.0"),
        ({"max_tokens": True}, "max_tokens must be a whole number, got True"),
        ({"min_tokens": -1}, "min_tokens must be from 0 to 2147483647, got -1"),
        ({"min_tokens": 9, "max_tokens": 8}, "min_tokens must not be above max_tokens, got 9 and 8"),
        ({"seed": -1}, "seed must be from 0 to 18446744073709551615, got -1"),
        ({"seed": 2**64}, "seed must be from 0 to 18446744073709551615, got 18446744073709551616"),
        ({"temperature": NAN}, r"temperature must be in \[0, 100\], got nan"),
        ({"temperature": INFINITY}, r"temperature must be in \[0, 100\], got inf"),
        ({"temperature": np.float32("nan")}, r"temperature must be in \[0, 100\], got nan"),
        ({"temperature": "1"}, "temperature must be a number, got '1'"),
        ({"temperature": True}, "temperature must be a number, got True"),
        ({"temperature": np.bool_(True)}, "temperature must be a number, got"),
        ({"temperature": np.ones(1)}, "temperature must be a number, got array"),
        ({"temperature": 1j}, "temperature must be a number, got 1j"),
        ({"top_k": -1}, "top_k must be from 0 to 2147483647, got -1"),
        ({"top_p": 0}, r"top_p must be in \(0, 1\], got 0"),
        ({"typical_p": 0.0}, r"typical_p must be in \(0, 1\], got 0.0"),
        ({"acceptance": "sure"}, "acceptance must be one of auto, seeded, rejection, block, got 'sure'"),
        ({"acceptance": None}, "acceptance must be one of auto, seeded, rejection, block, got None"),
        ({"acceptance": "seeded"}, "acceptance seeded needs a seed, and there is none"),
        ({"acceptance": "block", "seed": 3}, "acceptance block draws afresh each time, and there is seed 3"),
        ({"acceptance": "rejection", "seed": 0}, "acceptance rejection draws afresh each time, and there is seed 0"),
        ({"lenience": 0}, r"lenience must be in \(0, 1\], got 0"),
        ({"lenience": 1.5}, r"lenience must be in \(0, 1\], got 1.5"),
        ({"lenience": float("nan")}, r"lenience must be in \(0, 1\], got nan"),
        ({"lenience": True}, "lenience must be a number, got True"),
        ({"lenience": 0.5}, "lenience below 1 needs rejection .* got 0.5 and temperature 0"),
        ({"lenience": 0.5, "temperature": 1, "seed": 0}, "lenience below 1 needs rejection .* got 0.5 and seed 0"),
        ({"lenience": 0.5, "temperature": 1, "acceptance": "block"}, "got 0.5 and acceptance block"),
        ({"min_p": 1}, r"min_p must be in \[0, 1\), got 1"),
        ({"repetition_penalty": 0}, r"repetition_penalty must be in \[0.01, 10\], got 0"),
        ({"repetition_penalty": 1e-300}, r"repetition_penalty must be in \[0.01, 10\], got 1e-300"),
        ({"presence_penalty": 2.5}, r"presence_penalty must be in \[-2, 2\], got 2.5"),
        ({"frequency_penalty": -NAN}, r"frequency_penalty must be in \[-2, 2\], got nan"),
        ({"penalty_window": -2}, "penalty_window must be from -1 to 2147483647, got -2"),
        ({"logit_bias": [1]}, r"logit_bias must map token ids to numbers, got \[1\]"),
        ({"logit_bias": {"1": 1.0}}, "every id of logit_bias must be a whole number, got '1'"),
        ({"logit_bias": {1: 101}}, r"every logit_bias must be in \[-100, 100\], got 101"),
        ({"logit_bias": {1: NAN}}, r"every logit_bias must be in \[-100, 100\], got nan"),
        ({"logit_bias": dict.fromkeys(range(1025), 1.0)}, "logit_bias takes at most 1024 ids, got 1025"),
        ({"banned_token_ids": "12"}, "banned_token_ids must be a list of token ids, got '12'"),
        ({"banned_token_ids": [-1]}, "every id of banned_token_ids must be from 0"),
        ({"banned_token_ids": [1.5]}, "every id of banned_token_ids must be a whole number, got 1.5"),
        ({"banned_token_ids": 5}, "banned_token_ids must be a list of token ids, got 5"),
        ({"stop_token_ids": [None]}, "every id of stop_token_ids must be a whole number, got None"),
        ({"allowed_token_ids": []}, "of 0 allowed ones all are banned"),
        ({"allowed_token_ids": [4, 5], "banned_token_ids": [5, 4, 3]}, "of 2 allowed ones all are banned"),
        ({"logprobs": 21}, "logprobs must be from 0 to 20, got 21"),
        ({"logprobs": True}, "logprobs must be a whole number, got True"),
    ],
)
def test_values_outside_their_rule_are_refused(option: dict[str, Any], rule: str) -> None:
    with pytest.raises(UsageError, match=rule):
        SamplingParams(**option)


def test_numbers_of_other_types_are_taken_and_kept_as_plain_ones() -> None:
    numbers: dict[str, Any] = {
        "temperature": np.float32(0.5),
        "top_p": Fraction(3, 4),
        "min_p": np.float64(0.25),
        "top_k": np.int64(7),
        "seed": np.uint64(2**64 - 1),
        "max_tokens": np.int16(9),
        "logit_bias": {np.int32(3): np.float16(1.5)},
        "banned_token_ids": [np.int64(4), 4, 5],
    }
    params = SamplingParams(**numbers)
    assert (params.temperature, params.top_p, params.min_p) == (0.5, 0.75, 0.25)
    assert (params.top_k, params.seed, params.max_tokens) == (7, 2**64 - 1, 9)
    assert (params.logit_bias, params.banned_token_ids) == ({3: 1.5}, (4, 5))
    kept = [params.temperature, params.top_p, params.min_p, params.top_k, params.seed, *params.logit_bias]
    assert {type(value) for value in kept} == {float, int}


def test_parameters_can_be_compared_and_hashed() -> None:
    first, second = SamplingParams(logit_bias={1: 2.0}), SamplingParams(logit_bias={1: 2.0})
    assert first == second != SamplingParams(logit_bias={1: 3.0})
    assert hash(first) == hash(second)


@pytest.mark.parametrize(
    ("option", "rule"),
    [
        ({"logit_bias": {3: 1.0, 10: 1.0}}, "every id of logit_bias must be below the vocabulary's 10 tokens, got 10"),
        ({"banned_token_ids": [12]}, "every id of banned_token_ids must be below the vocabulary's 10 tokens, got 12"),
        ({"allowed_token_ids": [1, 11]}, "every id of allowed_token_ids must be below"),
        ({"stop_token_ids": [99]}, "every id of stop_token_ids must be below"),
        ({"banned_token_ids": range(10)}, "one of 10 tokens must be left that may be written first, none is"),
        ({"banned_token_ids": range(9), "min_tokens": 1}, "one of 10 tokens must be left"),
        ({"allowed_token_ids": [9], "min_tokens": 1}, "one of 10 tokens must be left"),
    ],
)
def test_what_does_not_fit_the_vocabulary_is_refused(option: dict[str, Any], rule: str) -> None:
    params = SamplingParams(**option)
    with pytest.raises(UsageError, match=rule):
        params.require_vocabulary(10, {9})


def test_what_fits_the_vocabulary_passes() -> None:
    SamplingParams(allowed_token_ids=[9], logit_bias={9: 1.0}, stop_token_ids=[8]).require_vocabulary(10, {9})
    SamplingParams(allowed_token_ids=[8, 9], min_tokens=1).require_vocabulary(10, {9})
    SamplingParams(banned_token_ids=range(9)).require_vocabulary(10, {9})


def test_seeds_of_several_completions_follow_each_other() -> None:
    params = SamplingParams(temperature=1.0, seed=2**64 - 1)
    assert [params.for_completion(index).seed for index in range(3)] == [2**64 - 1, 0, 1]
    assert SamplingParams(temperature=1.0).for_completion(5).seed is None
