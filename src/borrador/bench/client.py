"""One client of a load test: asks a server over HTTP, and notes when what came."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from borrador.remote.address import Address
from borrador.remote.chunks import ChunkReader, number
from borrador.remote.connection import describe_failure
from borrador.remote.refusal import RefusedError, refusal
from borrador.remote.request import chat_body
from borrador.types import Message, SamplingParams

if TYPE_CHECKING:
    import httpx

TOO_MANY_REQUESTS = 429


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer that came whole. Times in seconds since the question was sent.

    Attributes:
        text: of the answer.
        tokens: in it.
        from_usage: the server counted them; otherwise they are the events that brought text.
        first_token_s: until the first text; the answer's end where there was none.
        end_s: until the stream ended.
    """

    text: str
    tokens: int
    from_usage: bool
    first_token_s: float
    end_s: float

    @property
    def token_s(self) -> float | None:
        """Seconds for each token after the first (TPOT); None where there is none."""
        return (self.end_s - self.first_token_s) / (self.tokens - 1) if self.tokens > 1 else None


class LoadClient:
    """Any number of clients of one server.

    Args:
        http: closed by whoever opened it.
        address: of the server.
        model: by the server's name for it.
        max_tokens: of every answer.
    """

    def __init__(self, http: httpx.AsyncClient, address: Address, model: str, max_tokens: int) -> None:
        self._http = http
        self._address = address
        self._model = model
        self._params = SamplingParams(max_tokens=max_tokens)
        self._asks_usage = True

    async def ask(self, question: str, speculate: bool | None = None) -> Answer:
        """Ask at temperature 0.

        Args:
            question: the user's message.
            speculate: turn drafting on or off; None says nothing of it.

        Raises:
            RefusedError: the server refuses, with status 429 where it is busy.
            BorradorError: the answer did not come whole.
        """
        try:
            return await self._ask(question, speculate)
        except RefusedError as error:
            if not self._asks_usage or not error.names("stream_options"):
                raise
        self._asks_usage = False
        return await self._ask(question, speculate)

    async def _ask(self, question: str, speculate: bool | None) -> Answer:
        import httpx

        speculative = None if speculate is None else {"enabled": speculate}
        messages: list[Message] = [{"role": "user", "content": question}]
        body = chat_body(self._model, messages, self._params, speculative, usage=self._asks_usage)
        start = time.perf_counter()
        try:
            async with self._http.stream("POST", f"{self._address.base}/chat/completions", json=body) as response:
                if response.status_code != 200:
                    content = await response.aread()
                    wait = response.headers.get("retry-after")
                    raise refusal(self._address.base, response.status_code, content, wait)
                # Reading costs the machine time that the server may want: nothing is parsed before the end.
                blocks = [(block, time.perf_counter() - start) async for block in response.aiter_bytes()]
        except httpx.HTTPError as error:
            raise describe_failure(self._address, error) from error
        return read_answer(blocks, time.perf_counter() - start)


def read_answer(blocks: Sequence[tuple[bytes, float]], end_s: float) -> Answer:
    """The answer of a stream, of which each block came at a time.

    Raises:
        BorradorError: it is not whole.
    """
    reader = ChunkReader()
    texts: list[str] = []
    told: float | None = None
    events, first_end, position = 0, None, 0
    for line in b"".join(block for block, _ in blocks).splitlines(keepends=True):
        position += len(line)
        chunk = reader.read(line.decode("utf-8", "replace"))
        if chunk is None:
            continue
        if chunk.text or chunk.reasoning:
            texts.append(chunk.text)
            events += 1
            first_end = first_end or position
        told = number(chunk.usage, "completion_tokens") if chunk.usage else told
    reader.require_end()
    first_token_s = end_s if first_end is None else _arrival(blocks, first_end)
    return Answer("".join(texts), events if told is None else int(told), told is not None, first_token_s, end_s)


def _arrival(blocks: Sequence[tuple[bytes, float]], position: int) -> float:
    """When so many bytes of the stream were there."""
    ends = list(accumulate(len(block) for block, _ in blocks))
    return blocks[bisect_left(ends, position)][1]
