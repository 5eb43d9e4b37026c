"""Completions: texts that are continued as they stand."""

from __future__ import annotations

from typing import Any

import pytest
from tests.server.conftest import ANSWER
from tests.server.rig import Rig
from tests.server.sse import stream, text_of

PATH = "/v1/completions"
START = "<|im_start|>"


def ask(rig: Rig, **body: Any) -> dict[str, Any]:
    response = rig.post(PATH, **{"prompt": START, "max_tokens": 200, **body})
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def test_a_continuation_has_the_shape_that_clients_know(rig: Rig) -> None:
    answer = ask(rig)
    assert answer["object"] == "text_completion"
    assert answer["id"].startswith("cmpl-")
    assert answer["choices"] == [{"index": 0, "text": ANSWER, "logprobs": None, "finish_reason": "stop"}]


def test_sixteen_tokens_are_written_unless_asked_otherwise(rig: Rig) -> None:
    choice = ask(rig, max_tokens=None)["choices"][0]
    assert choice["text"] == ANSWER[:16]
    assert choice["finish_reason"] == "length"


def test_a_stream_ends_with_a_chunk_without_text(rig: Rig) -> None:
    *texts, last, usage = stream(rig, PATH, prompt=START, max_tokens=200, stream_options={"include_usage": True})
    assert text_of(texts) == ANSWER
    assert last["choices"] == [{"index": 0, "text": "", "logprobs": None, "finish_reason": "stop"}]
    assert usage["choices"] == []
    assert usage["usage"]["prompt_tokens"] == 1


def test_every_prompt_gets_n_answers_in_order(rig: Rig) -> None:
    answer = ask(rig, prompt=[START, f"{START}Red"], n=2)
    assert [choice["index"] for choice in answer["choices"]] == [0, 1, 2, 3]
    assert [choice["text"] for choice in answer["choices"]] == [ANSWER, ANSWER, ANSWER[3:], ANSWER[3:]]
    assert answer["usage"]["prompt_tokens"] == 1 + 4


def test_log_probabilities_say_where_each_token_begins(rig: Rig) -> None:
    logprobs = ask(rig, logprobs=2)["choices"][0]["logprobs"]
    assert "".join(logprobs["tokens"]) == ANSWER
    assert bytes(byte for data in logprobs["bytes"] for byte in data) == ANSWER.encode()
    for token, offset in zip(logprobs["tokens"], logprobs["text_offset"], strict=True):
        assert ANSWER[offset : offset + len(token)] == token
    assert all(token in top for token, top in zip(logprobs["tokens"][:21], logprobs["top_logprobs"], strict=False))


def test_a_stream_tells_the_same_log_probabilities(rig: Rig) -> None:
    whole = ask(rig, logprobs=1)["choices"][0]["logprobs"]
    chunks = stream(rig, PATH, prompt=START, max_tokens=200, logprobs=1)
    told = [choice["logprobs"] for chunk in chunks for choice in chunk["choices"] if choice["logprobs"]]
    for name in ("tokens", "token_logprobs", "text_offset", "bytes"):
        assert [item for each in told for item in each[name]] == whole[name]


@pytest.mark.parametrize(("prompt", "max_tokens"), [("x" * 4096, 1), ("x" * 4000, 97), ("x" * 5000, None)])
def test_what_does_not_fit_the_context_is_refused_with_all_numbers(
    rig: Rig, prompt: str, max_tokens: int | None
) -> None:
    response = rig.post(PATH, prompt=prompt, max_tokens=max_tokens)
    error = response.json()["error"]
    assert response.status_code == 400
    assert (error["code"], error["param"]) == ("context_length_exceeded", "prompt")
    assert "4096" in error["message"]
    assert str(len(prompt)) in error["message"]
    assert max_tokens in (None, 1) or str(max_tokens) in error["message"]


def test_the_whole_context_can_be_used(rig: Rig) -> None:
    assert ask(rig, prompt=START + "x" * 4000, max_tokens=95)["choices"]


def test_tokens_are_continued_as_the_text_that_they_are(rig: Rig) -> None:
    ids = rig.post("/tokenize", prompt=f"{START}Red").json()["tokens"]
    assert ask(rig, prompt=ids)["choices"][0]["text"] == ANSWER[3:]
    both = ask(rig, prompt=[ids, ids[:1]], n=2)
    assert [choice["text"] for choice in both["choices"]] == [ANSWER[3:]] * 2 + [ANSWER] * 2
    assert both["usage"]["prompt_tokens"] == 4 + 1


def test_tokens_that_do_not_exist_or_do_not_fit_are_refused_with_the_number(rig: Rig) -> None:
    error = rig.post(PATH, prompt=[1, 260]).json()["error"]
    assert error["param"] == "prompt"
    assert error["message"].startswith("token ids of a prompt must be below the vocabulary's 260 tokens, got 260")
    error = rig.post(PATH, prompt=[1] * 4096).json()["error"]
    assert (error["code"], error["param"]) == ("context_length_exceeded", "prompt")
    assert "4096" in error["message"]
    assert rig.post(PATH, prompt=[[1]] * 9).json()["error"]["param"] == "prompt"


@pytest.mark.parametrize("prompt", [f"{START}Red", [257, *b"Red"]])
def test_an_echo_is_the_prompt_before_the_answer(rig: Rig, prompt: Any) -> None:
    assert ask(rig, prompt=prompt, echo=True)["choices"][0]["text"] == START + ANSWER
    assert text_of(stream(rig, PATH, prompt=prompt, max_tokens=200, echo=True)) == START + ANSWER


def test_every_answer_echoes_its_own_prompt(rig: Rig) -> None:
    answer = ask(rig, prompt=[START, f"{START}R"], n=2, echo=True, max_tokens=3)
    assert [choice["text"] for choice in answer["choices"]] == [START + ANSWER[:3]] * 2 + [START + ANSWER[:4]] * 2


def test_log_probabilities_of_an_echo_are_refused_by_name(rig: Rig) -> None:
    error = rig.post(PATH, prompt=START, echo=True, logprobs=1).json()["error"]
    assert (error["param"], error["message"]) == (
        "echo",
        "echo must be false when logprobs are requested: a prompt has none here.",
    )
