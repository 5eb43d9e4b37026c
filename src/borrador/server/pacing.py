"""When the parts of a stream are sent.

How many tokens come together tells how many drafted ones were accepted, and that tells something about the text to
whoever sees the packets, encrypted as they may be (Wei et al., arXiv 2411.01076).
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Iterator, Sequence

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from borrador.engine.batch import Progress
from borrador.server.answers import Step
from borrador.server.telling import Next
from borrador.types import GenerationEvent

BLOCK_BYTES = 1024
_LONGEST_STEP_S = 1.0
_MOST_BUFFERED = 1 << 16


class TokenPace:
    """Tells a stream one token of each answer at a time, spread evenly over the time that a step takes.

    That time is the one between the last two steps. Where it was shorter the rest of a step is late, and the next one
    makes up for it; a token is told a step late at most.

    Args:
        after: gives the steps, as `Answers.next` does.
    """

    def __init__(self, after: Next) -> None:
        self._after = after
        self._due: deque[Step] = deque()
        self._arrived = 0.0
        self._gap_s = 0.0

    async def __call__(self) -> Step:
        if self._due:
            await asyncio.sleep(self._gap_s)
            return self._due.popleft()
        step = await self._after()
        now = time.monotonic()
        step_s = min(now - self._arrived, _LONGEST_STEP_S) if self._arrived else 0.0
        self._arrived = now
        self._due.extend(_token_by_token(step))
        self._gap_s = step_s / max(len(self._due), 1)
        return self._due.popleft() if self._due else step


def _token_by_token(step: Step) -> Iterator[Step]:
    """The first token of every answer, the second ones, and so on; an error stands with the last one.

    An answer may stand there several times, where steps came before they were asked for.
    """
    parts: dict[int, list[Progress]] = {}
    for index, progress in step:
        parts.setdefault(index, []).extend(_parts(progress))
    for turn in range(max(map(len, parts.values()), default=0)):
        yield [(index, of_one[turn]) for index, of_one in parts.items() if turn < len(of_one)]


def _parts(progress: Progress) -> Iterator[Progress]:
    groups: list[list[GenerationEvent]] = []
    for event in progress.events:
        if groups and not event.token_ids:
            groups[-1].append(event)
        else:
            groups.append([event])
    if not groups:
        yield progress
    for group in groups[:-1]:
        yield Progress(progress.key, group)
    for group in groups[-1:]:
        yield Progress(progress.key, group, progress.error)


class FixedIntervals:
    """Sends streams as blocks of one size at fixed intervals, whatever there is to send: nothing of when its tokens
    were written, and how many together, shows in a stream but its end.

    A block is filled up with a comment, which clients of server-sent events drop. A stream of which more is written
    than fits is slowed down.

    Args:
        app: writes the streams.
        interval_s: between blocks.
        block_bytes: the size of a block.
    """

    def __init__(self, app: ASGIApp, interval_s: float, block_bytes: int = BLOCK_BYTES) -> None:
        self._app = app
        self._interval_s = interval_s
        self._block_bytes = block_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        blocks = _Blocks(send, self._interval_s, self._block_bytes)
        try:
            await self._app(scope, receive, blocks.send)
        finally:
            await blocks.close()


class _Blocks:
    """What a response sends, as blocks if it is a stream."""

    def __init__(self, send: Send, interval_s: float, block_bytes: int) -> None:
        self._send = send
        self._interval_s = interval_s
        self._block_bytes = block_bytes
        self._buffer = bytearray()
        self._is_whole = False
        self._has_room = asyncio.Event()
        self._ticking: asyncio.Task[None] | None = None

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            await self._send(message)
            if _is_stream(message):
                self._ticking = asyncio.create_task(self._tick())
        elif self._ticking is None:
            await self._send(message)
        else:
            await self._take(message, self._ticking)

    async def close(self) -> None:
        """Stop, where the response has not come to its end."""
        if self._ticking is not None and not self._ticking.done():
            self._ticking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._ticking

    async def _take(self, message: Message, ticking: asyncio.Task[None]) -> None:
        self._buffer += message.get("body", b"")
        self._is_whole = not message.get("more_body", False)
        if self._is_whole:
            await ticking
        while len(self._buffer) > _MOST_BUFFERED and not ticking.done():
            self._has_room.clear()
            await self._has_room.wait()

    async def _tick(self) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time()
        while self._buffer or not self._is_whole:
            due += self._interval_s
            if due < loop.time():  # no two at once, where one was late
                due = loop.time() + self._interval_s
            await asyncio.sleep(due - loop.time())
            block = bytes(self._buffer[: self._block_bytes])
            del self._buffer[: self._block_bytes]
            self._has_room.set()
            block += _comment(self._block_bytes - len(block))
            await self._send({"type": "http.response.body", "body": block, "more_body": True})
        await self._send({"type": "http.response.body", "body": b""})


def _is_stream(message: Message) -> bool:
    headers: Sequence[tuple[bytes, bytes]] = message.get("headers", ())
    return any(name == b"content-type" and value.startswith(b"text/event-stream") for name, value in headers)


def _comment(length: int) -> bytes:
    """So many bytes that say nothing."""
    return b"\n" * length if length < 3 else b":" + b"." * (length - 3) + b"\n\n"
