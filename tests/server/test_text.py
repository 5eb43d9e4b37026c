"""A text reaches its client whole: no character is cut, whatever the tokens and rounds, and streams equal answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.server.rig import Rig, serve
from tests.server.sse import stream, text_of
from tests.server.writing import oracle, writing_llm

PATH = "/v1/chat/completions"
HELLO = [{"role": "user", "content": "Hi"}]
TEXT = "a🟥b👩‍👩‍👧c한국어 é\u0301 \U0001f3f3️‍🌈."  # one byte per token: every character is cut at every byte


@pytest.fixture(scope="module", params=[0, 1, 2, 3, 4])
def rig(request: pytest.FixtureRequest) -> Iterator[Rig]:
    """Servers whose rounds bring 1 to 5 bytes each."""
    with serve(writing_llm(TEXT, oracle(TEXT.encode(), right=request.param))) as running:
        yield running


def ask(rig: Rig, **body: Any) -> dict[str, Any]:
    choice: dict[str, Any] = rig.post(PATH, messages=HELLO, **body).json()["choices"][0]
    return choice


def test_no_character_is_cut_in_a_stream(rig: Rig) -> None:
    chunks = stream(rig, PATH, messages=HELLO)
    assert text_of(chunks) == TEXT
    assert all("\ufffd" not in str(chunk) for chunk in chunks)


def test_an_answer_cut_at_any_byte_is_the_same_in_a_stream(rig: Rig) -> None:
    for length in range(1, len(TEXT.encode()) + 1, 3):
        whole = ask(rig, max_tokens=length)
        assert whole["message"]["content"] == TEXT.encode()[:length].decode(errors="replace")
        assert text_of(stream(rig, PATH, messages=HELLO, max_tokens=length)) == whole["message"]["content"]


@pytest.mark.parametrize("stop", ["b", "🟥", "👧c", "国", "국어 é", "\u0301 \U0001f3f3", "nowhere"])
def test_the_texts_of_log_probabilities_are_the_text_wherever_it_stops(rig: Rig, stop: str) -> None:
    whole = ask(rig, stop=stop, logprobs=True)
    text = TEXT.split(stop)[0]
    assert whole["message"]["content"] == text
    assert "".join(entry["token"] for entry in whole["logprobs"]["content"]) == text
    chunks = stream(rig, PATH, messages=HELLO, stop=stop, logprobs=True)
    assert text_of(chunks) == text
    entries = [
        entry
        for chunk in chunks
        for choice in chunk["choices"]
        for entry in (choice["logprobs"] or {"content": []})["content"]
    ]
    assert entries == whole["logprobs"]["content"]


def test_bytes_of_log_probabilities_are_those_of_the_tokens(rig: Rig) -> None:
    entries = ask(rig, logprobs=True)["logprobs"]["content"]
    assert [entry["bytes"] for entry in entries] == [[byte] for byte in TEXT.encode()]


def test_the_tokens_of_a_trace_are_the_content_of_their_chunk(rig: Rig) -> None:
    chunks = stream(rig, PATH, messages=HELLO, speculative={"trace": True}, logprobs=True)
    origins = []
    for chunk in chunks[1:-1]:
        tokens = chunk["speculative"]["tokens"]
        assert "".join(token["text"] for token in tokens) == chunk["choices"][0]["delta"]["content"]
        origins += [token["origin"] for token in tokens if token["token_id"] is not None]
    assert len(origins) == len(TEXT.encode())
    accepted = sum(each["accepted"] for chunk in chunks[1:-1] for each in chunk["speculative"]["rounds"])
    assert accepted == origins.count("draft")
