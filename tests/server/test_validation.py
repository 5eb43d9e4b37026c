"""An error of a body says what is wrong with which field, and how to put it right, however large the body is."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from borrador.server.errors import ApiError
from borrador.server.json_body import JsonError
from borrador.server.schemas_chat import ChatRequest
from borrador.server.validation import read_request

HELLO = {"role": "user", "content": "Hi"}


def fault_of(**body: Any) -> ApiError:
    with pytest.raises(ApiError) as caught:
        read_request(ChatRequest, json.dumps({"messages": [HELLO], **body}).encode(), 64)
    return caught.value


@pytest.mark.parametrize(
    ("body", "param", "message"),
    [
        ({"temperature": 3}, "temperature", "temperature must be less than or equal to 2, got 3."),
        ({"stop": ["a", 1]}, "stop[1]", "stop[1] must be a valid string, got 1."),
        ({"messages": []}, "messages", "messages must have at least 1 item, got []."),
        (
            {"messages": [HELLO, {"role": "user"}]},
            "messages[1].content",
            "messages[1].content must be given, it is missing.",
        ),
        ({"messages": [{"content": "x"}]}, "messages[0].role", "messages[0].role must be given, it is missing."),
        (
            {"messages": [{"role": "robot", "content": "x"}]},
            "messages[0].role",
            "messages[0].role must be one of 'system', 'developer', 'user', 'assistant', 'tool', got 'robot'.",
        ),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
            "messages[0].content[0].type",
            "messages[0].content[0].type must be 'text', got 'image_url'.",
        ),
        ({"logit_bias": {"5": "x"}}, "logit_bias.5", "logit_bias.5 must be a valid number, got 'x'."),
        ({"temprature": 1}, "temprature", "temprature is not a field of this request. Did you mean temperature?"),
        ({"speculative": {"x": 1}}, "speculative.x", "speculative.x is not a field of this request."),
        ({"audio": {}}, "audio", "audio is not supported: answers are text."),
        ({"user": 5}, "user", "user must be a valid string, got 5."),
        ({"stop": 5}, "stop", "stop must be a valid string or a valid list, got 5."),
        ({"speculative": 5}, "speculative", "speculative must be a valid object, got 5."),
        ({"store": True}, "store", "store must be false, got true."),
        ({"stop": [None]}, "stop[0]", "stop[0] must be a valid string, got null."),
        (
            {"messages": [{"role": "user", "content": []}]},
            "messages[0].content",
            "messages[0].content must have at least 1 item, got [].",
        ),
    ],
)
def test_a_fault_names_field_rule_and_value(body: dict[str, Any], param: str, message: str) -> None:
    fault = fault_of(**body)
    assert (fault.status, fault.param, str(fault)) == (400, param, message)


@pytest.mark.parametrize(
    "body",
    [
        {str(i): 1 for i in range(30_000)},
        {"messages": [{**HELLO, **{str(i): 1 for i in range(30_000)}}]},
        {"messages": [1] * 100_000},
        {"messages": [{"role": "user", "content": [1] * 100_000}]},
        {"logit_bias": {str(i): "x" for i in range(15_000)}},
        {"stop": [1] * 100_000},
        {"tools": [{}] * 30_000},
        {"metadata": {str(i): 1 for i in range(30_000)}},
        {"user": "x" * 1_500_000},
    ],
)
def test_many_faults_take_no_longer_than_reading_them(body: dict[str, Any]) -> None:
    data = json.dumps({"messages": [HELLO], **body}).encode()
    start = time.process_time()
    with pytest.raises(ApiError) as caught:
        read_request(ChatRequest, data, 64)
    assert time.process_time() - start < 1
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"a": NaN}', b'{"a": 1, "a": 2}', b"\xff", b'{"a": 1e999}'])
def test_what_is_no_json_object_is_told_so(body: bytes) -> None:
    with pytest.raises(JsonError):
        read_request(ChatRequest, body, 64)
