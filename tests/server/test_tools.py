"""Calls of tools are found in answers, however they arrive, and what is no call stays text."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from borrador.server.tools import CallReader

NAMES = {"add", "now"}
ADD = '<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": "é"}}\n</tool_call>'
NOW = '<tool_call>{"name": "now", "arguments": {}}</tool_call>'
TEXTS = [
    ADD,
    f"I will add.\n{ADD}",
    f"{ADD}\n{NOW}",
    f"First {ADD} then {NOW} done.",
    f"{NOW}\n\n",
    "No call at all, <b>bold</b> <tool",
    " \n ",
    '<tool_call>{"name": "rm", "arguments": {}}</tool_call>',
    "<tool_call>not JSON</tool_call>" + NOW,
    '<tool_call>{"name": "add", "argum',
    '{"name": "add", "arguments": {}}',
    '```json\n{"name": "add", "arguments": {}}\n```',
    '{"name": "add", "arguments": {}}\n{"name": "now", "arguments": {}}',
    '{"name": "rm", "arguments": {}}',
    '{"name": "add"} and more',
    "```python\nprint()\n```",
]


def read(pieces: list[str]) -> tuple[str, list[tuple[str, str]]]:
    reader = CallReader(NAMES)
    text, calls = "", []
    for index, piece in enumerate(pieces):
        outside, found = reader.take(piece, ended=index == len(pieces) - 1)
        text += outside
        calls += [(call.name, call.arguments) for call in found]
    assert reader.found == len(calls)
    return text, calls


@pytest.mark.parametrize(
    ("text", "outside", "calls"),
    [
        (ADD, "", ["add"]),
        (f"I will add.\n{ADD}", "I will add.", ["add"]),
        (f"{ADD}\n{NOW}", "", ["add", "now"]),
        (f"First {ADD} then {NOW} done.", "Firstthendone.", ["add", "now"]),
        ("a <tool", "a <tool", []),
        ("<tool_call>not JSON</tool_call>", "<tool_call>not JSON</tool_call>", []),
        ('<tool_call>{"name": "rm", "arguments": {}}</tool_call>', None, []),
        ('<tool_call>{"name": "add", "arguments": {"a": NaN}}</tool_call>', None, []),
        ('<tool_call>{"name": "add", "arguments": []}</tool_call>', None, []),
        ('<tool_call>{"name": "add", "arguments": {}, "x": 1}</tool_call>', None, []),
        ('<tool_call>{"name": ["add"], "arguments": {}}</tool_call>', None, []),
        ("<tool_call>" + "[" * 100_000 + "</tool_call>", None, []),
        ('<tool_call>{"name": "add", "argum', None, []),
        ('```json\n{"name": "add", "arguments": {}}\n```', "", ["add"]),
        ('{"name": "add", "arguments": {}}\n{"name": "now", "arguments": {}}\n', "", ["add", "now"]),
        ('{"name": "add", "arguments": {}} is what I call', None, []),
        ('{"colour": "red"}', None, []),
    ],
)
def test_calls_are_read_as_json_and_nothing_else(text: str, outside: str | None, calls: list[str]) -> None:
    found = read([text])
    assert found[0] == (text if outside is None else outside)
    assert [name for name, _ in found[1]] == calls


def test_arguments_are_a_json_object() -> None:
    _, ((name, arguments),) = read([ADD])
    assert (name, json.loads(arguments)) == ("add", {"a": 1, "b": "é"})


@given(st.sampled_from(TEXTS), st.lists(st.integers(0, 120), max_size=12))
def test_how_the_text_is_cut_changes_nothing(text: str, cuts: list[int]) -> None:
    borders = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    pieces = [text[start:end] for start, end in itertools.pairwise(borders)]
    assert read(pieces) == read([text])


def test_text_is_told_as_soon_as_no_call_can_begin_in_it() -> None:
    reader = CallReader(NAMES)
    assert reader.take("Hello <", ended=False) == ("Hello", [])
    assert reader.take("b> ", ended=False) == (" <b>", [])
    assert reader.take("x", ended=False) == (" x", [])
