"""From the fields of a request to parameters of the engine, within the server's limits."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from borrador.engine.requests import Drafting
from borrador.errors import UsageError
from borrador.server.config import ServerConfig
from borrador.server.errors import ApiError, as_api_error, refusal
from borrador.server.schemas import AnswerRequest
from borrador.types import SamplingParams

_SAME_NAMES = (
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "typical_p",
    "repetition_penalty",
    "presence_penalty",
    "frequency_penalty",
    "penalty_window",
    "allowed_token_ids",
    "banned_token_ids",
    "stop_token_ids",
    "min_tokens",
    "ignore_eos",
)
DEFAULT_TEMPERATURE = 1.0

_ELSEWHERE = {"acceptance": "speculative.acceptance", "json_schema": "response_format", "grammar": "tools"}


def sampling_params(
    request: AnswerRequest, max_tokens: int, logprobs: int | None, shape: Mapping[str, str]
) -> SamplingParams:
    """How the answers to a request are written.

    Args:
        request: from a client.
        max_tokens: of an answer.
        logprobs: how many likely tokens to report of each position; None reports nothing.
        shape: parameters that give the answer a shape.

    Raises:
        ApiError: a field breaks a rule.
    """
    given = {name: value for name in _SAME_NAMES if (value := getattr(request, name)) is not None}
    given = {"temperature": DEFAULT_TEMPERATURE, **given, **shape}
    if request.seed is not None:
        given["seed"] = request.seed % 2**64
    if request.stop is not None:
        given["stop"] = request.stop
    if request.logit_bias is not None:
        given["logit_bias"] = _biases(request.logit_bias)
    if request.speculative is not None and request.speculative.acceptance is not None:
        given["acceptance"] = request.speculative.acceptance
    try:
        return SamplingParams(max_tokens=max_tokens, logprobs=logprobs, **given)
    except UsageError as error:
        raise blame(error, type(request)) from None


def drafting_of(request: AnswerRequest) -> Drafting:
    """How the answers are drafted."""
    asked = request.speculative
    if asked is None:
        return Drafting()
    return Drafting(asked.enabled is not False, asked.draft_tokens)


def check_limits(request: AnswerRequest, config: ServerConfig) -> None:
    """Hold a request to limits that the server was started with. Raises ApiError naming the field."""
    stops = [request.stop] if isinstance(request.stop, str) else request.stop or []
    for name, rule, most, value in (
        ("n", "must be at most {}", config.completions, request.n or 1),
        ("stop", "must have at most {} strings", config.stop_strings, len(stops)),
        ("stop", "must have at most {} characters a string", config.stop_characters, max(map(len, stops), default=0)),
        ("logit_bias", "must have at most {} ids", config.logit_biases, len(request.logit_bias or ())),
    ):
        if value > most:
            raise refusal(f"{name} {rule.format(most)}, got {value}.", name, "invalid_value")
    if request.stream_options is not None and not request.stream:
        raise refusal("stream_options must come with stream: true.", "stream_options", "invalid_value")


def check_top_logprobs(count: int, config: ServerConfig, param: str) -> int:
    """How many likely tokens to report of each position. Raises ApiError where it is too many."""
    if count > config.top_logprobs:
        raise refusal(f"{param} must be at most {config.top_logprobs}, got {count}.", param, "invalid_value")
    return count


def check_schema_limits(schema: Any, config: ServerConfig, param: str) -> None:
    """Hold a JSON schema to its limits. Raises ApiError naming the field."""
    size, deepest = len(json.dumps(schema)), _depth(schema)
    if size > config.schema_bytes:
        raise refusal(f"{param} must have at most {config.schema_bytes} bytes, it has {size}.", param, "invalid_value")
    if deepest > config.schema_depth:
        raise refusal(
            f"{param} must be nested at most {config.schema_depth} deep, it is {deepest} deep.", param, "invalid_value"
        )


def blame(error: UsageError, kind: type[AnswerRequest]) -> ApiError:
    """An error of the engine, with the first field of this kind of request that its sentence names."""
    told = as_api_error(error)
    words = (_ELSEWHERE.get(word, word) for word in str(error).split())
    told.param = next((word for word in words if word.split(".")[0] in kind.model_fields), None)
    return told


def _biases(given: Mapping[str, float]) -> dict[int, float]:
    unknown = next((token for token in given if not (token.isascii() and token.isdigit() and len(token) < 11)), None)
    if unknown is not None:
        raise refusal(f"logit_bias must have token ids as keys, got {unknown[:40]!r}.", "logit_bias", "invalid_value")
    return {int(token): bias for token, bias in given.items()}


def _depth(value: Any) -> int:
    """How many objects and lists stand within one another; bounded by what a body may have."""
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if children is None else 1 + max(map(_depth, children), default=0)
