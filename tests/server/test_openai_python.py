"""OpenAI's official client for Python works with the server, as it stands."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import openai
import pytest
from openai import OpenAI
from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolParam
from pydantic import BaseModel
from tests.batches import eventually
from tests.server.conftest import ANSWER
from tests.server.rig import Rig, serve
from tests.server.whole import Whole, whole
from tests.server.writing import writing_llm

from borrador.server.config import ServerConfig

HELLO: list[ChatCompletionMessageParam] = [{"role": "user", "content": "Colours?"}]
ADD: ChatCompletionToolParam = {
    "type": "function",
    "function": {
        "name": "add",
        "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
    },
}
CALL = '<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>'


def client_of(rig: Rig | Whole, retries: int = 0, timeout: float = 60) -> OpenAI:
    return OpenAI(base_url=f"{rig.url}/v1", api_key="unused", max_retries=retries, timeout=timeout)


@pytest.fixture(scope="module")
def client(rig: Rig) -> Iterator[OpenAI]:
    with client_of(rig) as opened:
        yield opened


@pytest.fixture(scope="module")
def calling() -> Iterator[OpenAI]:
    """A client of a server whose model calls a tool."""
    with serve(writing_llm(CALL)) as running, client_of(running) as opened:
        yield opened


def test_chats(client: OpenAI) -> None:
    completion = client.chat.completions.create(model="tiny", messages=HELLO)
    assert completion.choices[0].message.content == ANSWER
    assert completion.choices[0].finish_reason == "stop"
    assert completion.usage is not None
    assert completion.usage.completion_tokens == len(ANSWER.encode())


def test_streams_of_chats(client: OpenAI) -> None:
    stream = client.chat.completions.create(
        model="default", messages=HELLO, stream=True, stream_options={"include_usage": True}
    )
    with stream:
        chunks = list(stream)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == ANSWER
    assert chunks[-1].usage is not None
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"


def test_the_stream_helper(client: OpenAI) -> None:
    with client.chat.completions.stream(model="tiny", messages=HELLO) as stream:
        stream.until_done()
        assert stream.get_final_completion().choices[0].message.content == ANSWER


def test_log_probabilities(client: OpenAI) -> None:
    choice = client.chat.completions.create(model="tiny", messages=HELLO, logprobs=True, top_logprobs=2).choices[0]
    assert choice.logprobs is not None
    assert choice.logprobs.content is not None
    assert b"".join(bytes(entry.bytes or ()) for entry in choice.logprobs.content) == ANSWER.encode()
    assert "".join(entry.token for entry in choice.logprobs.content) == ANSWER
    assert all(len(entry.top_logprobs) == 2 for entry in choice.logprobs.content)


def test_several_answers(client: OpenAI) -> None:
    completion = client.chat.completions.create(model="tiny", messages=HELLO, n=3, seed=1)
    assert [choice.index for choice in completion.choices] == [0, 1, 2]
    assert {choice.message.content for choice in completion.choices} == {ANSWER}


def test_completions(client: OpenAI) -> None:
    completion = client.completions.create(model="tiny", prompt="<|im_start|>", max_tokens=9, logprobs=1)
    assert completion.choices[0].text == ANSWER[:9]
    assert completion.choices[0].finish_reason == "length"
    assert completion.choices[0].logprobs is not None
    assert completion.choices[0].logprobs.text_offset == list(range(9))


def test_streams_of_completions(client: OpenAI) -> None:
    with client.completions.create(model="tiny", prompt="<|im_start|>", max_tokens=100, stream=True) as stream:
        assert "".join(chunk.choices[0].text for chunk in stream) == ANSWER


def test_models(client: OpenAI) -> None:
    assert [model.id for model in client.models.list()] == ["tiny"]
    assert client.models.retrieve("tiny").owned_by == "borrador"


def test_tools(calling: OpenAI) -> None:
    message = calling.chat.completions.create(model="tiny", messages=HELLO, tools=[ADD]).choices[0].message
    assert message.tool_calls is not None
    (call,) = message.tool_calls
    assert call.type == "function"
    assert (call.function.name, json.loads(call.function.arguments)) == ("add", {"a": 1})
    messages: list[ChatCompletionMessageParam] = [
        *HELLO,
        {
            "role": "assistant",
            "tool_calls": [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {
                        "name": call.function.name,
                        "arguments": call.function.arguments,
                    },
                }
            ],
        },
        {"role": "tool", "tool_call_id": call.id, "content": "2"},
    ]
    calling.chat.completions.create(model="tiny", messages=messages, tools=[ADD], tool_choice="none")


@pytest.mark.parametrize("choice", ["auto", "required"])
def test_streams_of_tool_calls(calling: OpenAI, choice: str) -> None:
    with calling.chat.completions.stream(
        model="tiny", messages=HELLO, tools=[ADD], tool_choice="auto" if choice == "auto" else "required"
    ) as stream:
        stream.until_done()
        final = stream.get_final_completion().choices[0]
    assert final.finish_reason == "tool_calls"
    assert final.message.tool_calls is not None
    assert final.message.tool_calls[0].function.arguments == '{"a": 1}'


class Colour(BaseModel):
    name: str
    strength: int


def test_answers_of_a_shape() -> None:
    with serve(writing_llm('{"name": "red", "strength": 3}')) as running, client_of(running) as opened:
        completion = opened.chat.completions.parse(model="tiny", messages=HELLO, response_format=Colour)
    assert completion.choices[0].message.parsed == Colour(name="red", strength=3)


def test_errors_are_those_that_the_client_knows(client: OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        client.chat.completions.create(model="tiny", messages=HELLO, temperature=3)
    assert refused.value.param == "temperature"
    with pytest.raises(openai.NotFoundError) as missing:
        client.chat.completions.create(model="gpt-4", messages=HELLO)
    assert missing.value.code == "model_not_found"
    with pytest.raises(openai.BadRequestError) as long:
        client.completions.create(model="tiny", prompt="x" * 5000)
    assert long.value.code == "context_length_exceeded"


def test_a_full_server_is_tried_again_when_it_says() -> None:
    config = ServerConfig(port=0, concurrent=1, waiting=0)
    with (
        whole(writing_llm("slowly " * 300, pass_s=0.05), config) as running,
        client_of(running) as once,
        client_of(running, retries=20) as patient,
        closing(once.chat.completions.create(model="tiny", messages=HELLO, stream=True)) as stream,
        ThreadPoolExecutor(1) as pool,
    ):
        next(iter(stream))
        with pytest.raises(openai.RateLimitError) as full:
            once.chat.completions.create(model="tiny", messages=HELLO)
        assert int(full.value.response.headers["retry-after"]) >= 1
        waiting = pool.submit(patient.chat.completions.create, model="tiny", messages=HELLO, max_tokens=3)
        eventually(lambda: running.metrics()['requests_rejected_total{reason="queue_full"}'] > 1)
        stream.close()
        assert waiting.result().choices


def test_a_client_that_gives_up_frees_its_seat() -> None:
    with serve(writing_llm("slowly " * 500, pass_s=0.1)) as running:

        def give_up(timeout_s: float) -> bool:
            """Whether the server had begun to answer by then."""
            with client_of(running, timeout=timeout_s) as hasty, pytest.raises(openai.APITimeoutError):
                hasty.chat.completions.create(model="tiny", messages=HELLO)
            return running.scheduler.snapshot().requests_admitted > 0

        assert any(give_up(timeout_s) for timeout_s in (0.1, 1.0, 10.0))
        running.settle()
        now = running.scheduler.snapshot()
        assert now.requests_cancelled == now.requests_admitted
