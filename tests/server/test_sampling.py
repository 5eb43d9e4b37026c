"""Fields of a request become the engine's parameters, each the one it stands for."""

from __future__ import annotations

from typing import Any

import pytest

from borrador.engine.requests import Drafting
from borrador.server.sampling import drafting_of, sampling_params
from borrador.server.schemas_text import CompletionRequest
from borrador.types import SamplingParams


def params_of(**fields: Any) -> SamplingParams:
    return sampling_params(CompletionRequest.model_validate({"prompt": "x", **fields}), 9, None, {})


def test_defaults_are_openais() -> None:
    assert params_of() == SamplingParams(temperature=1.0, max_tokens=9)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", 0.5),
        ("top_p", 0.9),
        ("top_k", 40),
        ("min_p", 0.1),
        ("typical_p", 0.5),
        ("repetition_penalty", 1.2),
        ("presence_penalty", 0.5),
        ("frequency_penalty", -0.5),
        ("penalty_window", 7),
        ("allowed_token_ids", [5, 6]),
        ("banned_token_ids", [5]),
        ("stop_token_ids", [7]),
        ("min_tokens", 3),
        ("ignore_eos", True),
        ("seed", 5),
        ("stop", ["a", "b"]),
        ("stop", "a"),
    ],
)
def test_a_field_is_the_parameter_of_its_name(name: str, value: Any) -> None:
    expected: dict[str, Any] = {"temperature": 1.0, "max_tokens": 9, name: value}
    assert params_of(**{name: value}) == SamplingParams(**expected)


def test_a_negative_seed_is_one_of_64_bits() -> None:
    assert params_of(seed=-1).seed == 2**64 - 1


def test_biases_are_those_of_token_ids() -> None:
    assert dict(params_of(logit_bias={"5": 1, "60": -2.5}).logit_bias) == {5: 1.0, 60: -2.5}


def test_shape_and_log_probabilities_are_handed_on() -> None:
    params = sampling_params(
        CompletionRequest.model_validate({"prompt": "x"}), 5, 3, {"json_schema": '{"type": "object"}'}
    )
    assert (params.max_tokens, params.logprobs, params.json_schema) == (5, 3, '{"type": "object"}')


@pytest.mark.parametrize(
    ("asked", "drafting"),
    [
        (None, Drafting()),
        ({}, Drafting()),
        ({"enabled": True}, Drafting()),
        ({"enabled": False}, Drafting(False)),
        ({"draft_tokens": 7}, Drafting(True, 7)),
    ],
)
def test_drafting_is_as_asked_for(asked: dict[str, Any] | None, drafting: Drafting) -> None:
    assert drafting_of(CompletionRequest.model_validate({"prompt": "x", "speculative": asked})) == drafting


def test_drafts_are_judged_as_asked_for() -> None:
    request = CompletionRequest.model_validate({"prompt": "x", "speculative": {"acceptance": "rejection"}})
    assert sampling_params(request, 9, None, {}).acceptance == "rejection"
