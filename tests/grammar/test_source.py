from __future__ import annotations

from typing import Any

import pytest

from borrador.errors import UsageError
from borrador.grammar.source import source_of
from borrador.types import SamplingParams


def test_free_text_has_no_source() -> None:
    assert source_of(SamplingParams()) is None


@pytest.mark.parametrize("name", ["json_schema", "regex", "grammar"])
def test_the_source_names_its_option(name: str) -> None:
    options: dict[str, Any] = {"json_schema": {}, "regex": "a+", "grammar": 'start: "a"'}
    source = source_of(SamplingParams(**{name: options[name]}))
    assert source is not None
    assert source[0] == name


@pytest.mark.parametrize(
    ("option", "rule"),
    [
        ({"json_schema": {"type": "strin"}}, "json_schema cannot be enforced: Invalid type: strin"),
        ({"json_schema": {"properties": 3}}, "json_schema cannot be enforced: properties must be an object"),
        ({"json_schema": {"not": {}}}, r"json_schema cannot be enforced: Unimplemented keys: \[\"not\"\]"),
        ({"json_schema": {"$ref": "#/$defs/gone"}}, "json_schema cannot be enforced: Pointer '/\\$defs/gone'"),
        ({"json_schema": {"$ref": "https://example.com/a.json"}}, "json_schema cannot be enforced: Resource"),
        ({"json_schema": {"type": "integer", "minimum": 5, "maximum": 3}}, "Unsatisfiable schema: minimum"),
        ({"json_schema": {"oneOf": [{"type": "number"}, {"type": "integer"}]}}, "oneOf constraints are not supported"),
        ({"json_schema": {"type": "string", "format": "isbn"}}, "Unknown format: isbn"),
        ({"json_schema": '{"const": "\\ud800"}'}, "json_schema cannot be enforced: .*hex escape"),
        ({"json_schema": {"type": "string", "pattern": "("}}, "json_schema cannot be enforced: .*unclosed group"),
        ({"regex": "(a"}, "regex cannot be enforced: unclosed group"),
        ({"regex": "a(?=b)"}, "regex cannot be enforced: look-around"),
        ({"regex": r"(a)\1"}, "regex cannot be enforced: backreferences are not supported"),
        ({"grammar": "hello"}, "grammar cannot be enforced: 1.6.: Expected token ':'"),
        ({"grammar": 'start: "a" b'}, 'grammar cannot be enforced: .*unknown name: "b"'),
    ],
)
def test_what_cannot_be_enforced_is_refused_in_one_sentence(option: dict[str, Any], rule: str) -> None:
    with pytest.raises(UsageError, match=rule) as caught:
        source_of(SamplingParams(**option))
    assert "\n" not in str(caught.value)
    assert caught.value.hint
