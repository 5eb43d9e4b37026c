from __future__ import annotations

import re

import pytest
from website import http_api

from borrador.server.openapi import OPERATIONS


def test_every_path_of_the_api_has_a_section() -> None:
    page = http_api.render()
    assert [f"### `{'POST' if each.body else 'GET'} {each.path}`\n" in page for each in OPERATIONS] == [True] * 10


def test_links_lead_to_objects_of_the_page() -> None:
    page = http_api.render()
    linked = set(re.findall(r"\]\(#(\w+)\)", page))
    assert linked
    assert linked <= {name.lower() for name in re.findall(r"^### (\w+)$", page, re.MULTILINE)}


def test_fields_are_listed_with_their_bounds_and_meaning() -> None:
    row = "| `temperature` | number, at least 0, at most 2 | 1 by default; 0 is greedy. |"
    assert row in http_api.render().splitlines()


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}]}, "integer, at least 1"),
        ({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}, "string or list of string"),
        ({"$ref": "#/components/schemas/Usage"}, "[Usage](#usage)"),
        (
            {"type": "object", "additionalProperties": {"type": "number", "maximum": 100}},
            "object of number, at most 100",
        ),
        ({"const": "list", "type": "string"}, "`list`"),
        ({"enum": ["auto", "block"], "type": "string"}, "`auto`, `block`"),
        ({}, "any"),
    ],
)
def test_types_are_said_in_words(schema: http_api.Schema, words: str) -> None:
    assert http_api.describe_type(schema) == words
