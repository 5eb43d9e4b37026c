"""With real models: the server writes what the library writes, and tools are called in the model's own words."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.server.rig import serve
from tests.server.sse import stream, text_of
from tests.server.test_toolbox import deltas_of

import borrador
from borrador.types import SamplingParams

pytestmark = pytest.mark.real_model

PATH = "/v1/chat/completions"
QUESTION = [{"role": "user", "content": "Name three colours, then name them again."}]
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a city",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "unit": {"type": "string", "enum": ["c", "f"]}},
            "required": ["city", "unit"],
            "additionalProperties": False,
        },
    },
}


def test_the_server_writes_what_the_library_writes(model_path: Callable[[str], Path]) -> None:
    llm = borrador.load(model_path("smollm2-135m"), "auto", profile=False)
    whole = [llm.generate(QUESTION, SamplingParams(max_tokens=40, seed=seed, temperature=0.8)).text for seed in (1, 2)]
    greedy = llm.generate(QUESTION, SamplingParams(max_tokens=40)).text
    with serve(llm) as running:
        told = running.post(PATH, messages=QUESTION, max_tokens=40, seed=1, temperature=0.8, n=2).json()["choices"]
        assert [choice["message"]["content"] for choice in told] == whole
        assert text_of(stream(running, PATH, messages=QUESTION, max_tokens=40, temperature=0)) == greedy


def test_a_tool_is_called_as_its_schema_says(model_path: Callable[[str], Path]) -> None:
    question = [{"role": "user", "content": "What is the weather in Rome?"}]
    with serve(borrador.load(model_path("qwen2.5-coder-0.5b"), "auto", profile=False)) as running:
        for choice in ("auto", "required"):
            body = {"messages": question, "tools": [WEATHER], "tool_choice": choice, "temperature": 0}
            told = running.post(PATH, **body, max_tokens=80).json()["choices"][0]
            assert told["finish_reason"] == "tool_calls", told
            call = told["message"]["tool_calls"][0]["function"]
            assert call["name"] == "get_weather"
            assert json.loads(call["arguments"])["city"] == "Rome"
            begun, *rest = deltas_of(stream(running, PATH, **body, max_tokens=80))
            assert begun["function"] == {"name": "get_weather", "arguments": ""}
            assert len(rest) > 1
            arguments = "".join(part["function"]["arguments"] for part in rest)
            assert json.loads(arguments) == json.loads(call["arguments"])
