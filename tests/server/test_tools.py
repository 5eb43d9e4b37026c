"""Calls of tools are found in answers, however they arrive, and what is no call stays text."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from borrador.server.tool_syntax import HERMES, LLAMA, MISTRAL, SYNTAXES, Syntax, find_syntax
from borrador.server.tools import CallReader

NAMES = {"add", "now"}
ADD = '<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": "é"}}\n</tool_call>'
PLAIN, NAMED = '{"name": "add", "arguments": {}}', '{"name": "add", "parameters": {}}'
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


BROKEN = [
    '<tool_call>{"name": "add", "arguments": {"a": NaN}}</tool_call>' + NOW,
    '<tool_call>{"name": "add", "arguments": {"a": [1, {"b": "',
    '{"name": "add", "arguments": {}} is what I call',
    '<tool_call>{"name": "add", "arguments": {}, "x": 1}</tool_call> and',
]
FORMS = {
    HERMES.opening: [ADD, f"I will add.\n{ADD}", f"{ADD}\n{NOW}", '{"name": "add", "arguments": {"a": ["}"]}}', "No <"],
    MISTRAL.opening: [
        '[TOOL_CALLS] [{"name": "add", "arguments": {"a": "]}"}}, {"name": "now", "arguments": {}}]',
        '[{"name": "now", "arguments": {}}]',
        "[1] no call",
        "No [TOOL",
    ],
    LLAMA.opening: [
        '<|python_tag|>{"name": "add", "parameters": {"a": {"b": "\\\\"}}}',
        '{"type": "function", "name": "add", "parameters": {}}; {"name": "now", "parameters": {}}',
        "{1} no call",
    ],
}
cuts = st.lists(st.integers(0, 120), max_size=12)


def cut(text: str, places: list[int]) -> list[str]:
    borders = sorted({0, len(text), *(place for place in places if place < len(text))})
    return [text[start:end] for start, end in itertools.pairwise(borders)]


def read(pieces: list[str], syntax: Syntax = HERMES, *, streams: bool = False) -> tuple[str, list[tuple[str, str]]]:
    reader = CallReader(NAMES, syntax, streams=streams)
    text, calls, ids = "", list[tuple[str, str]](), list[str]()
    for index, piece in enumerate(pieces):
        outside, found = reader.take(piece, ended=index == len(pieces) - 1)
        text += outside
        for call in found:
            if call.is_rest:
                assert call.id == ids[-1]
                calls[-1] = call.name, calls[-1][1] + call.arguments
            else:
                ids.append(call.id)
                calls.append((call.name, call.arguments))
    assert len(set(ids)) == len(ids)
    assert reader.found == len(calls) or streams
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


@given(st.sampled_from([*TEXTS, *BROKEN]), cuts, st.booleans())
def test_how_the_text_is_cut_changes_nothing(text: str, cuts: list[int], streams: bool) -> None:
    assert read(cut(text, cuts), streams=streams) == read([text], streams=streams)


@pytest.mark.parametrize("syntax", SYNTAXES)
@given(st.data(), cuts)
def test_calls_told_while_they_are_written_are_those_that_are_read_at_the_end(
    syntax: Syntax, data: st.DataObject, cuts: list[int]
) -> None:
    text = data.draw(st.sampled_from(FORMS[syntax.opening]))
    told, whole = read(cut(text, cuts), syntax, streams=True), read([text], syntax)
    assert [(name, json.loads(arguments)) for name, arguments in told[1]] == [
        (name, json.loads(arguments)) for name, arguments in whole[1]
    ]
    assert told[0] == whole[0]


@pytest.mark.parametrize(
    ("syntax", "text", "outside", "calls"),
    [
        (MISTRAL, '[{"name": "add", "arguments": {"a": 1}}]', "", ["add"]),
        (
            MISTRAL,
            '[TOOL_CALLS] [{"name": "add", "arguments": {}}, {"name": "now", "arguments": {}}]',
            "",
            ["add", "now"],
        ),
        (MISTRAL, 'So: [TOOL_CALLS][{"name": "now", "arguments": {}}]', "So:", ["now"]),
        (MISTRAL, '[{"name": "rm", "arguments": {}}]', None, []),
        (MISTRAL, '[{"name": "add", "parameters": {}}]', None, []),
        (MISTRAL, "[1] is a footnote", None, []),
        (MISTRAL, "[TOOL_CALLS] none", None, []),
        (LLAMA, '{"name": "add", "parameters": {"a": 1}}', "", ["add"]),
        (
            LLAMA,
            '<|python_tag|>{"name": "add", "parameters": {}}; {"name": "now", "parameters": {}}',
            "",
            ["add", "now"],
        ),
        (LLAMA, '{"type": "function", "name": "now", "parameters": {}}', "", ["now"]),
        (LLAMA, '{"name": "add", "arguments": {}}', None, []),
        (LLAMA, "<|python_tag|>import os", None, []),
        (HERMES, '[{"name": "add", "arguments": {}}]', None, []),
    ],
)
@pytest.mark.parametrize("streams", [False, True])
def test_every_family_has_its_form(
    syntax: Syntax, text: str, outside: str | None, calls: list[str], streams: bool
) -> None:
    found = read([text], syntax, streams=streams)
    assert found[0] == (text if outside is None else outside)
    assert [name for name, _ in found[1]] == calls


def test_a_form_is_chosen_by_the_template() -> None:
    assert find_syntax("{{ tools }}<tool_call>") is HERMES
    assert find_syntax("{{ tools }}[TOOL_CALLS][{{ call | tojson }}]") is MISTRAL
    assert find_syntax("""{{ tools }}{{- '{"name": "' + call.name + '", ' }}{{- '"parameters": ' }}""") is LLAMA
    assert find_syntax("{{ tools }}<tool_call><function=") is None  # XML
    assert find_syntax("{{ tools }}[TOOL_CALLS]{{ name }}[ARGS]") is None
    assert find_syntax("{{ tools }}") is None


def test_arguments_are_told_as_they_are_written() -> None:
    reader = CallReader(NAMES, streams=True)
    assert reader.take('<tool_call>{"name": "add", "argum', ended=False) == ("", [])
    _, (begun, first) = reader.take('ents": {"a": "}', ended=False)
    assert (begun.name, begun.arguments, begun.is_rest) == ("add", "", False)
    assert (first.arguments, first.is_rest, first.id) == ('{"a": "}', True, begun.id)
    assert reader.found == 0
    _, (second,) = reader.take('\\""}}', ended=False)
    assert second.arguments == '\\""}'
    assert reader.take("</tool_call>", ended=True) == ("", [])
    assert reader.found == 1


@pytest.mark.parametrize(
    ("text", "rest", "found"),
    [
        ('<tool_call>{"name": "add", "arguments": {"a": NaN}}</tool_call>', "", 0),
        ('<tool_call>{"name": "add", "arguments": {"a": ', "", 0),
        ('<tool_call>{"name": "add", "arguments": {"a": 1}', "", 1),
        ('{"name": "add", "arguments": {}} is what I call', "is what I call", 1),
    ],
)
def test_what_was_told_and_is_no_json_is_no_call(text: str, rest: str, found: int) -> None:
    reader = CallReader(NAMES, streams=True)
    outside, calls = reader.take(text, ended=True)
    assert (outside, [call.name for call in calls if not call.is_rest], reader.found) == (rest, ["add"], found)


def test_text_is_told_as_soon_as_no_call_can_begin_in_it() -> None:
    reader = CallReader(NAMES)
    assert reader.take("Hello <", ended=False) == ("Hello", [])
    assert reader.take("b> ", ended=False) == (" <b>", [])
    assert reader.take("x", ended=False) == (" x", [])
