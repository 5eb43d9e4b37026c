from __future__ import annotations

import asyncio

import pytest
from tests.api_server import TEXT, ApiServer, Behaviour

from borrador.bench.client import Answer, LoadClient, read_answer
from borrador.errors import BorradorError
from borrador.remote.address import Address
from borrador.remote.connection import open_async_client
from borrador.remote.refusal import RefusedError

ROLE = b'data: {"choices": [{"delta": {"role": "assistant", "content": ""}}]}\n\n'
END = b'data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'


def delta(text: str) -> bytes:
    return b'data: {"choices": [{"delta": {"content": "%s"}}]}\n\n' % text.encode()


def ask(server: ApiServer, count: int = 1) -> list[Answer]:
    async def collect() -> list[Answer]:
        address = Address.parse(server.url)
        async with open_async_client(address) as http:
            client = LoadClient(http, address, "tiny", 16)
            return [await client.ask("Which city?") for _ in range(count)]

    return asyncio.run(collect())


def test_first_token_is_the_first_text_and_not_the_first_event() -> None:
    answer = read_answer(
        [(ROLE, 0.1), (b": ping\n\n", 0.2), (delta("a") + delta("b"), 0.5), (delta("c") + END, 0.9)], 1.0
    )
    assert answer == Answer("abc", 3, False, 0.5, 1.0)
    assert answer.token_s == pytest.approx(0.25)


def test_text_that_is_cut_into_blocks_is_there_with_its_last_block() -> None:
    half = len(delta("é")) - 4
    blocks = [(ROLE + delta("é")[:half], 0.1), (delta("é")[half:], 0.4), (END, 0.6)]
    assert read_answer(blocks, 0.6) == Answer("é", 1, False, 0.4, 0.6)


def test_usage_counts_tokens_where_the_server_tells_it() -> None:
    usage = b'data: {"choices": [], "usage": {"completion_tokens": 9}}\n\n'
    assert read_answer([(delta("a"), 0.1), (usage + END, 0.5)], 0.9).tokens == 9


def test_answer_without_text_has_its_first_token_at_its_end() -> None:
    answer = read_answer([(ROLE, 0.1), (END, 0.3)], 0.3)
    assert (answer, answer.token_s) == (Answer("", 0, False, 0.3, 0.3), None)


def test_stream_that_ends_early_is_no_answer() -> None:
    with pytest.raises(BorradorError, match="its stream ended early"):
        read_answer([(delta("a"), 0.1)], 0.2)


def test_times_are_those_of_the_server() -> None:
    with ApiServer(Behaviour(first_s=0.2, token_s=0.1)) as server:
        (answer,) = ask(server)
    assert (answer.text, answer.tokens, answer.from_usage) == (TEXT, 5, True)
    assert 0.2 <= answer.first_token_s <= answer.end_s
    assert answer.end_s >= 0.6
    assert answer.token_s == pytest.approx((answer.end_s - answer.first_token_s) / 4)


def test_server_that_does_not_count_tokens_is_asked_once_whether_it_does() -> None:
    with ApiServer(Behaviour(refuses="stream_options")) as server:
        answers = ask(server, 2)
    assert [(answer.tokens, answer.from_usage) for answer in answers] == [(5, False)] * 2
    assert len(server.asked) == 2


def test_connection_that_breaks_is_no_answer() -> None:
    with (
        ApiServer(Behaviour(dropped=frozenset({0}))) as server,
        pytest.raises(BorradorError, match="the connection to"),
    ):
        ask(server)


def test_busy_server_is_told_from_others_and_says_how_long_to_wait() -> None:
    with ApiServer(Behaviour(busy=frozenset({0}))) as server, pytest.raises(RefusedError) as caught:
        ask(server)
    assert (caught.value.status, caught.value.pause_s) == (429, 0.01)
