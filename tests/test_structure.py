from __future__ import annotations

from typing import Any

import pytest

from borrador.errors import UsageError
from borrador.structure import MAX_CHARACTERS, MAX_DEPTH, check_schema, check_text
from borrador.types import SamplingParams


def nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(depth - 1):
        schema = {"items": schema}
    return schema


def circular() -> dict[str, Any]:
    schema: dict[str, Any] = {}
    schema["items"] = schema
    return schema


@pytest.mark.parametrize("given", [{"z": 1, "a": {"é": [True, None]}}, '{"z": 1,\n "a": {"é": [true, null]}}'])
def test_a_schema_is_kept_as_json_with_its_keys_in_order(given: Any) -> None:
    assert check_schema(given) == '{"z": 1, "a": {"\\u00e9": [true, null]}}'


def test_a_schema_may_be_as_deep_and_as_long_as_the_limits() -> None:
    assert check_schema(nested(MAX_DEPTH)).count("items") == MAX_DEPTH - 1
    assert check_text("regex", "a" * MAX_CHARACTERS)


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        (True, "json_schema must be a JSON object, got True"),
        ("[1]", r"json_schema must be a JSON object, got \[1\]"),
        ("{", "json_schema must be JSON: Expecting property name"),
        ('{"a": NaN}', "json_schema must be JSON: NaN is not a JSON number"),
        ('{"b": {"a": 1, "a": 2}}', "json_schema must be JSON: the key 'a' occurs twice"),
        ({"a": float("inf")}, "json_schema must be JSON: Out of range"),
        ({"a": {1, 2}}, "json_schema must be JSON: Object of type set"),
        ({(1, 2): 3}, "json_schema must be JSON: keys must be"),
        ({"a": 10**5000}, "json_schema must be JSON: Exceeds the limit"),
        ('{"a": ' + "9" * 5000 + "}", "json_schema must be JSON: Exceeds the limit"),
        ("", "json_schema must be text that is not empty, got ''"),
        ("\ud800", "json_schema must be valid Unicode"),
        (nested(MAX_DEPTH + 1), "json_schema must be nested at most 64 deep"),
        ('{"a": ' * 20_000, "json_schema must be nested at most 64 deep"),
        (circular(), "json_schema must be nested at most 64 deep"),
        ({"enum": ["x" * MAX_CHARACTERS]}, "json_schema must have at most 262144 characters, it has 262158"),
        ({"enum": [0] * (MAX_CHARACTERS + 1)}, "json_schema must have at most 262144 values"),
    ],
)
def test_schemas_outside_the_rules_are_refused(given: Any, rule: str) -> None:
    with pytest.raises(UsageError, match=rule):
        SamplingParams(json_schema=given)


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"regex": ""}, "regex must be text that is not empty, got ''"),
        ({"regex": 7}, "regex must be text that is not empty, got 7"),
        ({"grammar": " \n"}, "grammar must be text that is not empty"),
        ({"grammar": "\udfff"}, "grammar must be valid Unicode"),
        ({"regex": "a" * (MAX_CHARACTERS + 1)}, "regex must have at most 262144 characters, it has 262145"),
        ({"regex": "a", "grammar": "start: A"}, "at most one shape, got regex and grammar"),
        ({"regex": "a", "json_schema": {}, "grammar": "b"}, "got json_schema and regex and grammar"),
        ({"regex": "a", "ignore_eos": True}, "ignore_eos cannot hold with regex"),
    ],
)
def test_shapes_outside_the_rules_are_refused(options: dict[str, Any], rule: str) -> None:
    with pytest.raises(UsageError, match=rule):
        SamplingParams(**options)


def test_parameters_with_a_schema_are_as_immutable_as_without() -> None:
    schema: dict[str, Any] = {"type": "object"}
    params = SamplingParams(json_schema=schema)
    schema["type"] = "array"
    assert params.json_schema == '{"type": "object"}'
    assert params.structured
    assert not SamplingParams().structured
    assert hash(params) == hash(SamplingParams(json_schema='{"type":"object"}'))
