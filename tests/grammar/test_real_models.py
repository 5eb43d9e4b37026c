"""Structured answers of a real model, judged by the jsonschema package."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from borrador.engine.llm import LLM
from borrador.engine.loading import load
from borrador.types import SamplingParams

pytestmark = pytest.mark.real_model

SCHEMAS: dict[str, dict[str, Any]] = {
    "nested": {
        "type": "object",
        "properties": {
            "city": {"type": "string", "maxLength": 20},
            "mayor": {"$ref": "#/$defs/person"},
            "founded": {"type": "string", "format": "date"},
        },
        "required": ["city", "mayor", "founded"],
        "additionalProperties": False,
        "$defs": {
            "person": {
                "type": "object",
                "properties": {"age": {"type": "integer", "minimum": 30, "maximum": 80}},
                "additionalProperties": False,
            }
        },
    },
    "list": {"type": "array", "items": {"enum": ["red", "green", "grey"]}, "minItems": 2, "maxItems": 4},
    "recursive": {
        "$defs": {
            "node": {"anyOf": [{"type": "null"}, {"type": "array", "items": {"$ref": "#/$defs/node"}, "maxItems": 1}]}
        },
        "$ref": "#/$defs/node",
    },
}
CHOICES: list[dict[str, Any]] = [{}, {"temperature": 0.9, "seed": 3}, {"temperature": 0.9, "top_p": 0.8, "seed": 4}]
QUESTION = [{"role": "user", "content": "Describe a town on the coast of Spain."}]


@pytest.fixture(scope="module")
def llm(model_path: Callable[[str], Path]) -> Iterator[LLM]:
    with load(model_path("smollm2-135m"), ["lookup", str(model_path("smollm2-135m"))], draft_tokens=4) as llm:
        yield llm


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("schema", SCHEMAS)
def test_answers_fit_the_schema_and_are_those_of_plain_decoding(llm: LLM, schema: str, choice: dict[str, Any]) -> None:
    params = SamplingParams(json_schema=SCHEMAS[schema], max_tokens=120, **choice)
    answer = llm.generate(QUESTION, params)
    plain = llm.generate(QUESTION, params, speculate=False)
    assert answer.token_ids == plain.token_ids
    assert answer.finish_reason == plain.finish_reason == "stop"
    jsonschema.validate(json.loads(answer.text), SCHEMAS[schema])
    assert answer.stats.target_passes < plain.stats.target_passes


def test_drawn_drafts_of_a_real_model_fit_a_pattern(llm: LLM) -> None:
    pattern = r"(Cádiz|Gijón|Málaga): \d{1,3}(,\d{3}){0,2} people"
    for _ in range(3):
        answer = llm.generate(QUESTION, SamplingParams(regex=pattern, temperature=1.0))
        assert re.fullmatch(pattern, answer.text)
        assert answer.finish_reason == "stop"
        assert answer.stats.grammar_tokens > 0
