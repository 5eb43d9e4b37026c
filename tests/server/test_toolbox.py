"""Tools of a request: what the model is told, what it must write, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.server.rig import Rig, serve
from tests.server.sse import stream, text_of
from tests.server.writing import oracle, writing_llm

from borrador.engine.llm import LLM
from borrador.models.scripted import ScriptedModel
from borrador.text.chat_template import CHATML, ChatTemplate

PATH = "/v1/chat/completions"
HELLO = [{"role": "user", "content": "Hi"}]
ADD = {
    "type": "function",
    "function": {
        "name": "add",
        "parameters": {
            "type": "object",
            "properties": {"a": {"$ref": "#/$defs/number"}},
            "required": ["a"],
            "additionalProperties": False,
            "$defs": {"number": {"type": "integer"}},
        },
    },
}
NOW = {"type": "function", "function": {"name": "now"}}
STRICT = {"type": "function", "function": {**ADD["function"], "strict": True}}  # type: ignore[dict-item]
CALL = '<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>'
WRONG = '<tool_call>\n{"name": "add", "arguments": {"b": 1}}\n</tool_call>'


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    """A server whose model says something and calls a tool."""
    answer = f"I add.\n{CALL}"
    with serve(writing_llm(answer, oracle(answer.encode()))) as running:
        yield running


def ask(rig: Rig, **body: Any) -> dict[str, Any]:
    response = rig.post(PATH, **{"messages": HELLO, "tools": [ADD, NOW], **body})
    assert response.status_code == 200, response.text
    choice: dict[str, Any] = response.json()["choices"][0]
    return choice


def deltas_of(chunks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    choices = [choice for chunk in chunks for choice in chunk["choices"] if "tool_calls" in choice["delta"]]
    return [part for choice in choices for part in choice["delta"]["tool_calls"]]


def test_a_call_is_told_apart_from_the_text(rig: Rig) -> None:
    choice = ask(rig)
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["content"] == "I add."
    (call,) = choice["message"]["tool_calls"]
    assert call["type"] == "function"
    assert call["id"].startswith("call_")
    assert call["function"] == {"name": "add", "arguments": '{"a": 1}'}


def test_a_stream_tells_a_call_while_it_is_written(rig: Rig) -> None:
    chunks = stream(rig, PATH, messages=HELLO, tools=[ADD])
    assert text_of(chunks) == "I add."
    begun, *rest = deltas_of(chunks)
    assert begun["id"].startswith("call_")
    assert (begun["index"], begun["type"], begun["function"]) == (0, "function", {"name": "add", "arguments": ""})
    assert len(rest) > 1
    assert all(set(part) == {"index", "function"} and part["index"] == 0 for part in rest)
    assert "".join(part["function"]["arguments"] for part in rest) == '{"a": 1}'
    assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"


def test_what_is_written_without_tools_is_text(rig: Rig) -> None:
    for body in ({"tools": None}, {"tool_choice": "none"}):
        choice = ask(rig, **body)
        assert (choice["message"]["content"], choice["finish_reason"]) == (f"I add.\n{CALL}", "stop")


def test_the_template_is_told_the_tools_unless_none_may_be_called(rig: Rig) -> None:
    def prompt_tokens(**body: Any) -> int:
        return int(rig.post(PATH, messages=HELLO, max_tokens=1, **body).json()["usage"]["prompt_tokens"])

    assert prompt_tokens(tools=[NOW]) == prompt_tokens() + len("now <tool_call>;")
    assert prompt_tokens(tools=[NOW], tool_choice="none") == prompt_tokens()


def test_the_template_is_told_calls_and_their_results(rig: Rig) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
    messages = [*HELLO, {"role": "assistant", "content": None, "tool_calls": [call]}]
    messages.append({"role": "tool", "tool_call_id": "c1", "content": "2"})
    told = rig.post("/tokenize", messages=messages).json()
    prompt = rig.post("/detokenize", tokens=told["tokens"]).json()["prompt"]
    assert prompt == 'user: Hi\nassistant: {"name": "add", "arguments": {"a": 1}}\ntool: 2\n'


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "add"}}])
def test_a_call_that_must_be_made_is_made_and_nothing_else(rig: Rig, choice: Any) -> None:
    """The model would rather say something first."""
    written = ask(rig, tools=[ADD], tool_choice=choice, max_tokens=200)
    assert written["message"]["content"] is None
    assert {call["function"]["name"] for call in written["message"]["tool_calls"]} == {"add"}
    for call in written["message"]["tool_calls"]:
        assert isinstance(json.loads(call["function"]["arguments"])["a"], int)


@pytest.mark.parametrize(
    ("body", "keys"),
    [
        ({"tools": [ADD]}, {"b"}),
        ({"tools": [STRICT]}, {"a"}),
        ({"tools": [ADD], "parallel_tool_calls": False}, {"a"}),
        ({"tools": [ADD], "tool_choice": "required"}, {"a"}),
    ],
)
def test_arguments_are_held_to_their_schema_where_that_is_asked_for(body: dict[str, Any], keys: set[str]) -> None:
    """The model would rather give an argument that does not exist."""
    with serve(writing_llm(f"Well, {WRONG}" if body.get("tool_choice") is None else WRONG)) as running:
        call, *_ = ask(running, max_tokens=120, **body)["message"]["tool_calls"]
        assert set(json.loads(call["function"]["arguments"])) == keys


@pytest.mark.parametrize(
    ("tools", "choice", "param"),
    [
        ([ADD, ADD], None, "tools"),
        (None, "auto", "tool_choice"),
        ([ADD], {"type": "function", "function": {"name": "sub"}}, "tool_choice"),
        ([{"type": "function", "function": {"name": "f", "parameters": {"d": "x" * 33_000}}}], None, "tools"),
        ([{"type": "function", "function": {"name": "f", "parameters": {"type": "nothing"}}}], "required", "tools"),
    ],
)
def test_what_cannot_be_is_refused(rig: Rig, tools: Any, choice: Any, param: str) -> None:
    response = rig.post(PATH, messages=HELLO, tools=tools, tool_choice=choice)
    assert response.status_code == 400, response.text
    assert response.json()["error"]["param"].startswith(param)


@pytest.mark.parametrize("template", [CHATML, CHATML + "{% if tools %}{{ tools }}{% endif %}"])
def test_a_model_that_knows_no_tools_refuses_them(template: str) -> None:
    tokenizer = writing_llm("").tokenizer
    llm = LLM(ScriptedModel(tokenizer.vocabulary_size), tokenizer, ChatTemplate(template), draft_tokens=0)
    with serve(llm) as running:
        response = running.post(PATH, messages=HELLO, tools=[ADD])
        assert (response.status_code, response.json()["error"]["param"]) == (400, "tools")
        assert running.post(PATH, messages=HELLO, tools=[ADD], tool_choice="none", max_tokens=1).status_code == 200


FORMS = {
    "mistral": ("[TOOL_CALLS]", '[{"name": "add", "arguments": {"a": 1}}, {"name": "now", "arguments": {}}]'),
    "llama": ("""{{ '{"name": "' ~ '"parameters": ' }}""", '{"name": "add", "parameters": {"a": 1}}'),
}


@pytest.mark.parametrize("form", FORMS)
def test_models_of_other_families_call_tools_in_their_own_form(form: str) -> None:
    sign, answer = FORMS[form]
    llm = writing_llm(answer)
    source = llm.template.source.replace("<tool_call>;", sign)
    other = LLM(llm._model, llm.tokenizer, ChatTemplate(source), context_length=4096)
    with serve(other) as running:
        for body in ({}, {"tool_choice": "required"}, {"parallel_tool_calls": False}):
            message = ask(running, max_tokens=200, **body)["message"]
            assert message["content"] is None
            assert message["tool_calls"][0]["function"] == {"name": "add", "arguments": '{"a": 1}'}
            assert len(message["tool_calls"]) == (1 if body or form == "llama" else 2) or body
        begun, *rest = deltas_of(stream(running, PATH, messages=HELLO, tools=[ADD]))
        assert begun["function"]["name"] == "add"
        assert "".join(part["function"]["arguments"] for part in rest if part["index"] == 0) == '{"a": 1}'
