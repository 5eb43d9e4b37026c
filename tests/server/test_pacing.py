from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Awaitable, Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import BinaryIO

import pytest
from starlette.types import Message, Receive, Scope, Send
from tests import virtual_time
from tests.server.live import connect, request
from tests.server.whole import whole
from tests.server.writing import oracle, writing_llm

from borrador.engine.batch import Progress
from borrador.server.answers import Step
from borrador.server.config import ServerConfig, StreamPacing
from borrador.server.pacing import BLOCK_BYTES, FixedIntervals, TokenPace
from borrador.types import FinishReason, GenerationEvent, Origin


def _event(number: int, finish_reason: FinishReason | None = None) -> GenerationEvent:
    ids = () if finish_reason else (number,)
    return GenerationEvent(text=str(number), token_ids=ids, origin=Origin.TARGET, round=1, finish_reason=finish_reason)


def _steps(*steps: Step) -> Callable[[], Awaitable[Step]]:
    left = list(steps)

    async def after() -> Step:
        return left.pop(0)

    return after


def _texts(step: Step) -> list[tuple[int, str]]:
    return [(index, "".join(event.text for event in progress.events)) for index, progress in step]


def test_a_step_is_told_one_token_of_each_answer_at_a_time() -> None:
    async def collect() -> list[Step]:
        first = [(0, Progress(7, [_event(1), _event(2), _event(3)])), (1, Progress(8, [_event(4)]))]
        last = [(0, Progress(7, [_event(5), _event(6), _event(7, "stop")]))]
        pace = TokenPace(_steps(first, (), last))
        return [await pace() for _ in range(6)]

    told = asyncio.run(collect())
    assert [_texts(step) for step in told] == [
        [(0, "1"), (1, "4")],
        [(0, "2")],
        [(0, "3")],
        [],
        [(0, "5")],
        [(0, "67")],
    ]
    assert told[-1][0][1].events[-1].finish_reason == "stop"


def test_steps_that_came_together_are_told_in_their_order() -> None:
    async def collect() -> list[Step]:
        pace = TokenPace(_steps([(0, Progress(7, [_event(1), _event(2)])), (0, Progress(7, [_event(3), _event(4)]))]))
        return [await pace() for _ in range(4)]

    assert [_texts(step) for step in asyncio.run(collect())] == [[(0, str(number))] for number in range(1, 5)]


def test_an_error_is_told_with_the_last_token() -> None:
    error = RuntimeError("on purpose")

    async def collect() -> list[Step]:
        pace = TokenPace(_steps([(0, Progress(7, [_event(1), _event(2)], error))], [(0, Progress(7, (), error))]))
        return [await pace() for _ in range(3)]

    assert [step[0][1].error for step in asyncio.run(collect())] == [None, error, error]


def test_tokens_are_spread_over_the_time_of_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps of 4 tokens come every 80 ms: so a token is told every 20 ms, once that is known, and none early."""

    async def collect() -> list[float]:
        loop = asyncio.get_running_loop()
        monkeypatch.setattr("borrador.server.pacing.time", SimpleNamespace(monotonic=loop.time))
        arrivals = itertools.count(loop.time(), 0.08)

        async def after() -> Step:
            await asyncio.sleep(next(arrivals) - loop.time())
            return [(0, Progress(7, [_event(number) for number in range(4)]))]

        pace, times = TokenPace(after), []
        for _ in range(24):
            await pace()
            times.append(loop.time())
        return times

    times = virtual_time.run(collect())
    gaps = [after - before for before, after in itertools.pairwise(times)]
    assert gaps == pytest.approx([0.0] * 3 + [0.08] + [0.02] * 19)


Bursts = Sequence[tuple[float, int]]  # seconds to wait, then how many chunks to send at once


def _writer(bursts: Bursts, content_type: bytes = b"text/event-stream") -> Callable[..., Awaitable[None]]:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", content_type)]})
        number = 0
        for wait_s, count in bursts:
            await asyncio.sleep(wait_s)
            for _ in range(count):
                await send({"type": "http.response.body", "body": b"data: %d\n\n" % number, "more_body": True})
                number += 1
        await send({"type": "http.response.body", "body": b"data: [DONE]\n\n"})

    return app


def _packets(app: Callable[..., Awaitable[None]], interval_s: float) -> list[tuple[float, bytes]]:
    """What a stream sends, with times."""
    sent: list[tuple[float, bytes]] = []

    async def send(message: Message) -> None:
        if message["type"] == "http.response.body":
            sent.append((asyncio.get_running_loop().time(), message["body"]))

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    virtual_time.run(FixedIntervals(app, interval_s)({"type": "http"}, receive, send))
    return sent


def _data(packets: Sequence[tuple[float, bytes]]) -> list[str]:
    """What a client of server-sent events reads in them."""
    lines = b"".join(body for _, body in packets).decode().splitlines()
    assert all(line == "" or line.startswith((":", "data: ")) for line in lines)
    return [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]


_ONE_BY_ONE: Bursts = [(0.02, 1)] * 20
_ACCEPTED: Bursts = [(0.08, 4)] * 5
_REFUSED_FIRST: Bursts = [(0.02, 1)] * 8 + [(0.12, 6)] * 2


@pytest.mark.parametrize("bursts", [_ONE_BY_ONE, _ACCEPTED, _REFUSED_FIRST])
def test_at_fixed_intervals_packets_are_the_same_whatever_is_accepted(bursts: Bursts) -> None:
    """The same 20 chunks in the same 0.4 s, one at a time or several: as many blocks, all of one size."""
    packets = _packets(_writer(bursts), 0.06)
    blocks, end = packets[:-1], packets[-1][1]
    assert {len(block) for _, block in blocks} == {BLOCK_BYTES}
    assert end == b""
    times = [when for when, _ in blocks]
    assert [after - before for before, after in itertools.pairwise(times)] == pytest.approx([0.06] * 6)
    assert _data(blocks) == [*(str(number) for number in range(20)), "[DONE]"]


def test_a_stream_of_more_than_fits_is_slowed_down_and_loses_nothing() -> None:
    packets = _packets(_writer([(0.0, 1000)]), 0.002)
    assert _data(packets) == [*(str(number) for number in range(1000)), "[DONE]"]
    assert {len(block) for _, block in packets[:-1]} == {BLOCK_BYTES}
    assert len(packets) > 10


def test_what_is_no_stream_is_sent_as_it_is() -> None:
    packets = _packets(_writer([(0.0, 2)], b"application/json"), 0.05)
    assert [body for _, body in packets] == [b"data: 0\n\n", b"data: 1\n\n", b"data: [DONE]\n\n"]


def test_a_stream_that_breaks_off_stops_its_blocks() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError, match="on purpose"):
        _packets(app, 0.01)


_ANSWER = "A drafted answer of some length, of which most is right."


def _stream(pacing: StreamPacing, pacing_s: float = 0.01) -> list[bytes]:
    """The body of a stream of a whole server whose drafts are mostly right, by the chunks of HTTP that it came in."""
    config = ServerConfig(port=0, stream_pacing=pacing, pacing_s=pacing_s)
    body = json.dumps({"messages": [{"role": "user", "content": "Hello"}], "stream": True}).encode()
    headers = (f"Content-Length: {len(body)}", "Connection: close")
    with whole(writing_llm(_ANSWER, oracle(_ANSWER.encode())), config) as server, connect(server.port) as client:
        client.sendall(request("/v1/chat/completions", *headers, method="POST") + body)
        with client.makefile("rb") as stream:
            while stream.readline().strip():
                pass
            return list(_http_chunks(stream))


def _http_chunks(stream: BinaryIO) -> Iterator[bytes]:
    while (size := int(stream.readline(), 16)) > 0:
        yield stream.read(size)
        stream.readline()


def _contents(body: Sequence[bytes]) -> list[str]:
    """What each chunk of the stream adds to the answer."""
    *chunks, done = _data([(0.0, part) for part in body])
    assert done == "[DONE]"
    found = [json.loads(chunk)["choices"][0]["delta"].get("content") for chunk in chunks]
    return [content for content in found if content is not None]


def test_without_pacing_the_tokens_of_a_round_come_together() -> None:
    contents = _contents(_stream("none"))
    assert "".join(contents) == _ANSWER
    assert max(len(content) for content in contents) == 4


def test_paced_by_tokens_every_chunk_adds_one() -> None:
    assert _contents(_stream("token")) == list(_ANSWER)


def test_paced_by_time_a_stream_comes_in_blocks_of_one_size() -> None:
    body = _stream("fixed-interval")
    assert {len(block) for block in body} == {BLOCK_BYTES}
    assert "".join(_contents(body)) == _ANSWER
