"""Chats: the answer, its stream, and every field that changes them."""

from __future__ import annotations

from typing import Any

import pytest
from tests.server.conftest import ANSWER
from tests.server.rig import Rig, serve
from tests.server.sse import stream, text_of
from tests.server.writing import TEMPLATE, writing_llm

from borrador.engine.llm import LLM
from borrador.models.scripted import ScriptedModel
from borrador.text.chat_template import ChatTemplate

PATH = "/v1/chat/completions"
HELLO = [{"role": "user", "content": "Colours?"}]


def ask(rig: Rig, **body: Any) -> dict[str, Any]:
    response = rig.post(PATH, **{"messages": HELLO, **body})
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def test_an_answer_has_the_shape_that_clients_know(rig: Rig) -> None:
    answer = ask(rig)
    assert answer["object"] == "chat.completion"
    assert answer["model"] == "tiny"
    assert answer["id"].startswith("chatcmpl-")
    assert answer["system_fingerprint"].startswith("borrador-")
    (choice,) = answer["choices"]
    assert choice == {
        "index": 0,
        "message": {"role": "assistant", "content": ANSWER, "refusal": None},
        "logprobs": None,
        "finish_reason": "stop",
    }


def test_usage_counts_prompt_and_answer(rig: Rig) -> None:
    prompt = len("user: Colours?\n") + 1
    usage = ask(rig)["usage"]
    assert usage["prompt_tokens"] == prompt
    assert usage["completion_tokens"] == len(ANSWER.encode())
    assert usage["total_tokens"] == prompt + len(ANSWER.encode())
    assert usage["prompt_tokens_details"]["cached_tokens"] <= prompt - 1


def test_a_stream_has_the_order_that_clients_expect(rig: Rig) -> None:
    chunks = stream(rig, PATH, messages=HELLO, stream_options={"include_usage": True})
    assert len({chunk["id"] for chunk in chunks}) == 1
    assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}
    first, *middle, last, usage = chunks
    assert first["choices"][0]["delta"] == {"role": "assistant"}
    for chunk in middle:
        (choice,) = chunk["choices"]
        assert list(choice["delta"]) == ["content"]
        assert choice["finish_reason"] is None
        assert chunk["usage"] is None
    assert last["choices"] == [{"index": 0, "delta": {}, "logprobs": None, "finish_reason": "stop"}]
    assert usage["choices"] == []
    assert usage["usage"]["completion_tokens"] == len(ANSWER.encode())
    assert text_of(chunks) == ANSWER


def test_a_stream_tells_no_usage_unless_asked(rig: Rig) -> None:
    chunks = stream(rig, PATH, messages=HELLO)
    assert all(chunk["choices"] and "usage" not in chunk for chunk in chunks)


def test_a_chunk_holds_the_tokens_of_a_round(rig: Rig) -> None:
    middle = stream(rig, PATH, messages=HELLO)[1:-1]
    texts = [chunk["choices"][0]["delta"]["content"] for chunk in middle]
    assert texts[:3] == ["R", "ed, ", "gree"]


@pytest.mark.parametrize("streamed", [True, False])
def test_the_cost_of_drafts_is_told_by_all_names(rig: Rig, streamed: bool) -> None:
    answer = stream(rig, PATH, messages=HELLO)[-1] if streamed else ask(rig)
    speculation, timings = answer["metrics"]["speculative_decoding"], answer["timings"]
    written = len(ANSWER.encode())
    assert timings["predicted_n"] == written
    assert timings["prompt_n"] + timings["cache_n"] == len("user: Colours?\n") + 1
    assert timings["draft_n"] == speculation["num_draft_tokens_tested"]
    assert (
        timings["draft_n_accepted"]
        == speculation["num_accepted_tokens"]
        == sum(speculation["num_accepted_tokens_per_pos"])
    )
    assert speculation["num_accepted_tokens_per_pos"] == [10, 10, 9]
    assert speculation["mean_acceptance_length"] == 1 + speculation["num_accepted_tokens"] / speculation["num_drafts"]


def test_answer_i_of_n_is_the_one_that_the_seed_plus_i_gives() -> None:
    tokenizer = writing_llm("").tokenizer
    llm = LLM(ScriptedModel(tokenizer.vocabulary_size), tokenizer, ChatTemplate(TEMPLATE), draft_tokens=0)
    with serve(llm) as running:
        together = ask(running, n=3, seed=7, max_tokens=20, logprobs=True)["choices"]
        alone = [ask(running, seed=7 + i, max_tokens=20, logprobs=True)["choices"][0] for i in range(3)]
    assert [choice["logprobs"] for choice in together] == [choice["logprobs"] for choice in alone]
    assert alone[0]["logprobs"] != alone[1]["logprobs"]


def test_equal_seeds_give_equal_answers_with_and_without_drafts(rig: Rig) -> None:
    plain = ask(rig, seed=5, speculative={"enabled": False})
    assert plain["metrics"]["speculative_decoding"]["num_drafts"] == 0
    drafted = ask(rig, seed=5)
    assert drafted["metrics"]["speculative_decoding"]["num_drafts"] > 0
    assert drafted["choices"] == plain["choices"]


def test_draft_tokens_of_a_request_are_the_most_that_a_round_drafts(rig: Rig) -> None:
    speculation = ask(rig, speculative={"draft_tokens": 2})["metrics"]["speculative_decoding"]
    assert speculation["num_draft_tokens"] <= 2 * speculation["num_drafts"]
    assert len(speculation["num_accepted_tokens_per_pos"]) == 2


@pytest.mark.parametrize("prompt", ["x" * 5000, "x" * 4090])
def test_a_conversation_that_does_not_fit_is_refused_with_the_numbers(rig: Rig, prompt: str) -> None:
    response = rig.post(PATH, messages=[{"role": "user", "content": prompt}])
    assert response.status_code == 400
    error = response.json()["error"]
    assert (error["code"], error["param"]) == ("context_length_exceeded", "messages")
    assert "4096" in error["message"]
    assert str(len(prompt) + len("user: \n") + 1) in error["message"]
