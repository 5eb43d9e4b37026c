from __future__ import annotations

from typing import Any

import pytest

from borrador.errors import UsageError
from borrador.types import Draft, GenerationStats, SamplingParams


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
        ({"stop": ["a"] * 65}, "at most 64 strings, got 65"),
        ({"stop": [1]}, "must be non-empty text, got 1"),
        ({"stop": ["a", ""]}, "must be non-empty text, got ''"),
        ({"stop": "\ud800"}, "must be valid Unicode"),
        ({"ignore_eos": "yes"}, "ignore_eos must be true or false, got 'yes'"),
        ({"max_tokens": 0}, "max_tokens must be from 1 to 2147483647, got 0"),
        ({"max_tokens": 1.0}, "max_tokens must be a whole number, got 1.0"),
        ({"seed": -1}, "seed must be from 0 to 18446744073709551615, got -1"),
        ({"temperature": float("nan")}, r"temperature must be in \[0, 100\], got nan"),
        ({"temperature": "1"}, "temperature must be a number, got '1'"),
        ({"top_p": 0}, r"top_p must be in \(0, 1\], got 0"),
        ({"min_p": 1}, r"min_p must be in \[0, 1\), got 1"),
    ],
)
def test_values_outside_their_rule_are_refused(option: dict[str, Any], rule: str) -> None:
    with pytest.raises(UsageError, match=rule):
        SamplingParams(**option)


@pytest.mark.parametrize(("tokens", "speed"), [(0, 0.0), (1, 0.0), (3, 4.0)])
def test_speed_leaves_out_the_first_token_and_is_never_negative(tokens: int, speed: float) -> None:
    assert GenerationStats(completion_tokens=tokens, decode_s=0.5).tokens_per_second == speed


def test_the_path_to_a_row_follows_the_parents() -> None:
    chain = Draft(tokens=(5, 6, 7))
    assert [chain.path_to(row) for row in range(4)] == [(), (5,), (5, 6), (5, 6, 7)]
    tree = Draft(tokens=(5, 6, 7, 8), parents=(-1, -1, 1, 2))
    assert [tree.path_to(row) for row in range(5)] == [(), (5,), (6,), (6, 7), (6, 7, 8)]
