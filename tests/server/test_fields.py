"""Every field of a request takes the values it should and refuses all others by name."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.server.rig import Rig

from borrador.server.schemas_chat import ChatRequest
from borrador.server.schemas_text import CompletionRequest

HELLO = {"role": "user", "content": "Hi"}
TOOL = {"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}
SCHEMA = {"type": "json_schema", "json_schema": {"name": "any", "schema": {}}}
DEEP: dict[str, Any] = {"type": "object"}
for _ in range(16):
    DEEP = {"items": DEEP}

# Values that are valid, then values that are not.
SHARED: dict[str, tuple[list[Any], list[Any]]] = {
    "model": (["default", "tiny", None], [1, "other", "/etc/passwd", "x" * 5000]),
    "n": ([1, 8, None], [0, 9, -1, 1.5, True, "1", 10**6, 2**31, 2**63]),
    "max_tokens": ([1, 7, None], [0, -1, 1.0, "5", 2**31, 2**63]),
    "temperature": ([0, 0.7, 2, None], [-0.1, 2.1, "1", True, 1e308, [1]]),
    "top_p": ([0.1, 1, None], [0, -1, 1.1, "1", False]),
    "top_k": ([0, 40, None], [-1, 1.5, 2**31, "40"]),
    "min_p": ([0, 0.05, None], [1, -0.1, "0"]),
    "typical_p": ([0.5, 1, None], [0, 1.5, {}]),
    "repetition_penalty": ([1, 1.1, 0.01, None], [0, 0.009, 1e-300, 10.5, "1"]),
    "presence_penalty": ([-2, 2, 0.5, None], [-2.1, 3, "0"]),
    "frequency_penalty": ([-2, 2, 0.5, None], [-2.1, 3, "0"]),
    "penalty_window": ([-1, 0, 64, None], [-2, 2**31, 1.5]),
    "logit_bias": ([{}, {"5": 1, "6": -100}, None], [{"5": 101}, {"x": 1}, {"-1": 1}, {"5": "1"}, {"260": 1}, [1]]),
    "allowed_token_ids": ([[65, 66], None], [[-1], ["a"], [260], 5, []]),
    "banned_token_ids": ([[65], [], None], [[-1], [1.5], [2**31], [260]]),
    "stop": (["x", ["x", "y"], [], None], [1, [1], "", [""], "x" * 257, ["x"] * 9, {"a": 1}]),
    "stop_token_ids": ([[65], [], None], [[-1], ["a"], [260]]),
    "min_tokens": ([0, 3, None], [-1, 1.5, 2**31, 4000]),
    "ignore_eos": ([True, False, None], [0, "true"]),
    "seed": ([0, 7, -1, 2**63, -(2**63), None], [1.5, "7", True]),
    "stream": ([False, None], [0, "false"]),
    "stream_options": ([None], [{}, {"include_usage": True}, {"x": 1}, {"include_obfuscation": True}, 5]),
    "speculative": (
        [{}, {"enabled": False}, {"draft_tokens": 3, "acceptance": "block"}, {"draft_tokens": None}, None],
        [{"x": 1}, {"enabled": 1}, {"draft_tokens": 65}, {"draft_tokens": -1}, {"acceptance": "seeded"}, [], "off"],
    ),
    "user": (["someone", None], [1, "x" * 5000]),
}
CHAT: dict[str, tuple[list[Any], list[Any]]] = {
    **SHARED,
    "messages": (
        [
            [HELLO],
            [{"role": "system", "content": "Be brief."}, HELLO],
            [{"role": "developer", "content": "Be brief."}, HELLO],
            [{"role": "user", "content": [{"type": "text", "text": "Hi"}, {"type": "text", "text": " there"}]}],
            [HELLO, {"role": "assistant", "content": "Yes?", "refusal": None, "annotations": []}, HELLO],
        ],
        [
            None,
            [],
            "Hi",
            ["Hi"],
            [{}],
            [{"role": "user"}],
            [{"content": "Hi"}],
            [{"role": "robot", "content": "Hi"}],
            [{"role": "user", "content": None}],
            [{"role": "user", "content": []}],
            [{"role": "user", "content": 5}],
            [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://x"}}]}],
            [{"role": "user", "content": "Hi", "name": "Bo"}],
            [{"role": "assistant", "content": None}],
            [{"role": "tool", "content": "5"}],
            [{"role": "assistant", "tool_calls": []}],
        ],
    ),
    "max_completion_tokens": ([1, 7, None], [0, -1, 1.0, "5", 2**63]),
    "logprobs": ([True, False, None], [1, "true"]),
    "top_logprobs": ([None], [0, 5, 21, -1, "5", True]),
    "response_format": (
        [{"type": "text"}, {"type": "json_object"}, SCHEMA, None],
        [
            {},
            {"type": "xml"},
            {"type": "json_schema"},
            {"type": "json_schema", "json_schema": {"name": "x"}},
            {"type": "json_schema", "json_schema": {"name": "x y", "schema": {}}},
            {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "nothing"}}},
            {"type": "json_schema", "json_schema": {"name": "x", "schema": DEEP}},
            {"type": "json_schema", "json_schema": {"name": "x", "schema": {"description": "x" * 33000}}},
            "json",
        ],
    ),
    "tools": ([[TOOL], [], None], [[TOOL, TOOL], [{}], "add", [{"type": "function", "function": {"name": "a b"}}]]),
    "tool_choice": (["none", None], ["auto", "required", "any", {"type": "function"}, {}, 1]),
    "parallel_tool_calls": ([True, False, None], [1, "true"]),
    "modalities": ([["text"], None], [["text", "audio"], ["audio"], [], "text"]),
    "service_tier": (["auto", "default", None], ["flex", "priority", 1]),
    "store": ([False, None], [True, "false"]),
    "metadata": ([{"a": "b"}, {}, None], [{"a": 1}, "a", {str(i): "" for i in range(65)}]),
    "safety_identifier": (["someone", None], [1]),
    "prompt_cache_key": (["key", None], [1]),
}
COMPLETION: dict[str, tuple[list[Any], list[Any]]] = {
    **SHARED,
    "prompt": (
        ["Once", ["Once", "Twice"], [1, 2], [[1, 2], [3]]],
        [None, "", [], [""], 5, ["x"] * 9, {"a": 1}, [-1], [[]], [[1], []], [1, "x"], [True], [10**6], [[1], [2**40]]],
    ),
    "logprobs": ([0, 5, 20, None], [-1, 21, True, "5", 1.5]),
    "best_of": ([1, None], [2, 0]),
    "echo": ([False, None, True], ["yes", 1]),
    "suffix": ([None], ["end"]),
}
UNSUPPORTED = ["audio", "functions", "function_call", "prediction", "reasoning_effort", "web_search_options"]


def _cases(table: dict[str, tuple[list[Any], list[Any]]], which: int) -> list[Any]:
    pairs = [(name, value) for name, values in table.items() for value in values[which]]
    return [pytest.param(name, value, id=f"{name}={json.dumps(value)[:40]}") for name, value in pairs]


def _chat(name: str, value: Any) -> dict[str, Any]:
    return (
        {"messages": [HELLO], "max_tokens": 3, name: value}
        if name != "max_completion_tokens"
        else {"messages": [HELLO], name: value}
    )


def _completion(name: str, value: Any) -> dict[str, Any]:
    return {"prompt": "Once", "max_tokens": 3, name: value}


def test_the_tables_know_every_field() -> None:
    assert set(CHAT) == set(ChatRequest.model_fields)
    assert set(COMPLETION) == set(CompletionRequest.model_fields)


@pytest.mark.parametrize(("name", "value"), _cases(CHAT, 0))
def test_a_chat_takes_a_valid_value(rig: Rig, name: str, value: Any) -> None:
    response = rig.post("/v1/chat/completions", **_chat(name, value))
    assert response.status_code == 200, response.text


@pytest.mark.parametrize(("name", "value"), _cases(COMPLETION, 0))
def test_a_completion_takes_a_valid_value(rig: Rig, name: str, value: Any) -> None:
    response = rig.post("/v1/completions", **_completion(name, value))
    assert response.status_code == 200, response.text


@pytest.mark.parametrize(("name", "value"), _cases(CHAT, 1))
def test_a_chat_refuses_an_invalid_value_and_names_the_field(rig: Rig, name: str, value: Any) -> None:
    _require_refusal(rig.post("/v1/chat/completions", **_chat(name, value)), name)


@pytest.mark.parametrize(("name", "value"), _cases(COMPLETION, 1))
def test_a_completion_refuses_an_invalid_value_and_names_the_field(rig: Rig, name: str, value: Any) -> None:
    _require_refusal(rig.post("/v1/completions", **_completion(name, value)), name)


@pytest.mark.parametrize("name", UNSUPPORTED)
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions"])
def test_what_the_server_cannot_do_is_refused_by_name(rig: Rig, path: str, name: str) -> None:
    needed = {"messages": [HELLO]} if "chat" in path else {"prompt": "Once"}
    response = rig.post(path, **needed, **{name: {}})
    _require_refusal(response, name)
    assert response.json()["error"]["code"] == "unsupported_parameter"
    assert rig.post(path, **needed, max_tokens=1, **{name: None}).status_code == 200


def test_an_unknown_field_is_refused_with_a_suggestion(rig: Rig) -> None:
    error = rig.post("/v1/chat/completions", messages=[HELLO], temprature=1).json()["error"]
    assert error["param"] == "temprature"
    assert error["message"] == "temprature is not a field of this request. Did you mean temperature?"


@pytest.mark.parametrize(
    "body",
    [
        {"max_tokens": 3, "max_completion_tokens": 4},
        {"logprobs": True, "top_logprobs": 21},
        {"seed": 1, "speculative": {"acceptance": "block"}},
        {"min_tokens": 5, "max_tokens": 3},
        {"tools": [TOOL], "response_format": {"type": "json_object"}},
        {"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "sub"}}},
        {"tools": [TOOL], "speculative": {"trace": True}},
        {"response_format": SCHEMA, "ignore_eos": True},
    ],
)
def test_fields_that_contradict_each_other_are_refused(rig: Rig, body: dict[str, Any]) -> None:
    response = rig.post("/v1/chat/completions", messages=[HELLO], **body)
    assert response.status_code == 400, response.text
    assert response.json()["error"]["param"].split(".")[0] in {*body, "acceptance"}


def _require_refusal(response: Any, name: str) -> None:
    error = response.json()["error"]
    assert response.status_code == (404 if error["code"] == "model_not_found" else 400), response.text
    assert error["type"] == "invalid_request_error"
    assert set(error) == {"message", "type", "param", "code"}
    assert name in (error["param"] or "") or name in error["message"], error
