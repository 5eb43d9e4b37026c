from __future__ import annotations

import json
from typing import Any

import pytest

from borrador.errors import BorradorError
from borrador.remote.chunks import Chunk, ChunkReader, number, split_lines
from borrador.remote.refusal import RefusedError
from borrador.types import Origin


def line(entry: Any) -> str:
    return f"data: {json.dumps(entry)}"


def test_chunks_carry_text_origins_and_the_end() -> None:
    reader = ChunkReader()
    tokens = [{"text": "a", "origin": "draft"}, {"text": "b", "origin": "dreamt"}]
    delta = {"choices": [{"delta": {"content": "ab"}, "finish_reason": None}], "speculative": {"tokens": tokens}}
    assert reader.read(line(delta)) == Chunk(text="ab", tokens=(("a", Origin.DRAFT), ("b", None)))
    assert not reader.ended
    last = reader.read(line({"choices": [{"delta": {}, "finish_reason": "stop"}], "timings": {"draft_n": 1}}))
    assert last == Chunk(finish_reason="stop", timings={"draft_n": 1})
    assert reader.read(line({"choices": [], "usage": {"completion_tokens": 2}})) == Chunk(
        usage={"completion_tokens": 2}
    )
    assert reader.read("data: [DONE]") is None
    reader.require_end()


@pytest.mark.parametrize("text", ["", ": ping", "event: message", "id: 3"])
def test_lines_without_data_carry_nothing(text: str) -> None:
    assert ChunkReader().read(text) is None


def test_stream_that_ends_early_is_an_error() -> None:
    reader = ChunkReader()
    reader.read(line({"choices": [{"delta": {"content": "ab"}}]}))
    with pytest.raises(BorradorError, match="its stream ended early"):
        reader.require_end()


@pytest.mark.parametrize("error", [{"message": "out\nof \x1b[1mmemory"}, "out of [1mmemory"])
def test_error_in_the_middle_is_one_line(error: Any) -> None:
    with pytest.raises(RefusedError, match=r"^the server cut the answer off: out of \[1mmemory$"):
        ChunkReader().read(line({"error": error}))


@pytest.mark.parametrize("data", ["{", "[1]", "null", "<html>", "[" * 100_000])
def test_event_that_is_not_json_is_an_error(data: str) -> None:
    with pytest.raises(BorradorError, match="an event that is not JSON"):
        ChunkReader().read(f"data: {data}")


@pytest.mark.parametrize(
    "entry",
    [
        {},
        {"choices": None},
        {"choices": [None]},
        {"choices": [{"delta": {"content": 3}}], "usage": [], "timings": "fast", "speculative": {"tokens": "a"}},
        {"choices": {"0": 1}, "speculative": []},
    ],
)
def test_what_is_not_as_the_api_has_it_counts_as_absent(entry: dict[str, Any]) -> None:
    assert ChunkReader().read(line(entry)) == Chunk()


def test_half_of_a_surrogate_pair_does_not_get_through() -> None:
    chunk = ChunkReader().read('data: {"choices": [{"delta": {"content": "a\\ud800"}}]}')
    assert chunk == Chunk(text="a?")


def test_reasoning_is_not_the_answer() -> None:
    chunk = ChunkReader().read(line({"choices": [{"delta": {"reasoning_content": "Hm"}}]}))
    assert chunk == Chunk(reasoning=True)


@pytest.mark.parametrize(("value", "figure"), [(3, 3.0), (0.5, 0.5), (True, None), ("3", None), (None, None)])
def test_figures_are_numbers(value: object, figure: float | None) -> None:
    assert number({"n": value}, "n") == figure


def test_lines_are_cut_at_line_feeds_alone_and_put_together_across_blocks() -> None:
    whole = "data: a\u2028\x85\x0bé\r\n\ndata: b".encode()
    for size in (1, 2, 3, len(whole)):
        blocks = (whole[start : start + size] for start in range(0, len(whole), size))
        assert list(split_lines(blocks)) == ["data: a\u2028\x85\x0bé\r", "", "data: b"]
