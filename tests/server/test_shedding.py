"""A server with more clients than it has room for writes as much as one that has enough room, and says no at once.

These times are for a machine that does nothing else. Its speed may change by the minute, so many short measurements
take turns; `BORRADOR_SHEDDING_S` is how many seconds each of them takes, 5 by default. Each begins when the crowd has
come, all of whose clients come at the same moment.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from statistics import median, quantiles

import pytest
from tests.server.live import request
from tests.server.process import ServerProcess, serving_model

pytestmark = [pytest.mark.long, pytest.mark.real_model]

PATH = "/v1/completions"
CONCURRENT, WAITING = 8, 16
MANY, FITTING = 64, 24
MEASURE_S = float(os.environ.get("BORRADOR_SHEDDING_S", "5"))
LEAST_SHARE = 0.95
MOST_REFUSAL_S = 0.05
TOKENS = 32
SETTLE_S = 2.0
PAIRS = 12
_numbers = count()


@dataclass(slots=True)
class Crowd:
    """What clients saw.

    Attributes:
        statuses: of all responses.
        tokens: of answers that came while it was measured.
        refusals_s: until each 429 was there, of those that came while it was measured.
    """

    statuses: set[int] = field(default_factory=set)
    tokens: int = 0
    refusals_s: list[float] = field(default_factory=list)


@pytest.fixture(scope="module")
def process(model_path: Callable[[str], Path]) -> Iterator[ServerProcess]:
    options = ("--concurrent", str(CONCURRENT), "--waiting", str(WAITING))
    with serving_model(model_path("smollm2-135m"), *options) as running:
        yield running


class Client:
    """Asks over a connection of its own, with little work: it shares the machine with the server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def ask(self) -> tuple[int, float]:
        """The status of an answer, and after how many seconds to come again."""
        body = {"prompt": f"Story {next(_numbers)}:", "max_tokens": TOKENS, "ignore_eos": True, "temperature": 0}
        data = json.dumps(body).encode()
        self._writer.write(request(PATH, f"Content-Length: {len(data)}", method="POST") + data)
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode().lower().splitlines()
        headers = dict(line.split(": ", 1) for line in head[1:] if line)
        await self._reader.readexactly(int(headers["content-length"]))
        return int(head[0].split()[1]), float(headers.get("retry-after", "0"))

    async def ask_on(self, crowd: Crowd, begins: float, ends: float) -> None:
        """Ask one question after another; one that is refused comes again some time after the server says."""
        while time.monotonic() < ends:
            start = time.monotonic()
            status, retry_s = await self.ask()
            now = time.monotonic()
            crowd.statuses.add(status)
            if status == 429:
                if begins < now < ends:
                    crowd.refusals_s.append(now - start)
                await asyncio.sleep(retry_s * random.uniform(1.0, 1.5))
            elif begins < now < ends:
                crowd.tokens += TOKENS


async def _measure(address: tuple[str, int], clients: int) -> Crowd:
    crowd, begins = Crowd(), time.monotonic() + SETTLE_S
    opened = [await asyncio.open_connection(*address) for _ in range(clients)]
    await asyncio.gather(*(Client(*streams).ask_on(crowd, begins, begins + MEASURE_S) for streams in opened))
    for _, writer in opened:
        writer.close()
        await writer.wait_closed()
    return crowd


async def _measure_both(address: tuple[str, int], *, many_first: bool) -> tuple[Crowd, Crowd]:
    """Of clients that there is room for, and of too many."""
    if many_first:
        many = await _measure(address, MANY)
        return await _measure(address, FITTING), many
    return await _measure(address, FITTING), await _measure(address, MANY)


def test_a_crowd_that_is_refused_at_once_costs_little_throughput(process: ServerProcess) -> None:
    asyncio.run(_measure(process.address, FITTING))  # so that costs are known
    pairs = [asyncio.run(_measure_both(process.address, many_first=index % 2 == 1)) for index in range(PAIRS)]
    assert {frozenset(fitting.statuses) for fitting, _ in pairs} == {frozenset({200})}
    assert {frozenset(many.statuses) for _, many in pairs} == {frozenset({200, 429})}
    refusals_s = [took for _, many in pairs for took in many.refusals_s]
    share = median(many.tokens / fitting.tokens for fitting, many in pairs)
    told = f"{len(refusals_s)} refused within {max(refusals_s) * 1e3:.0f} ms, {share:.3f} of the tokens"
    assert quantiles(refusals_s, n=100)[-1] < MOST_REFUSAL_S, told
    assert share >= LEAST_SHARE, told
    now = process.stats()
    assert now["requests_admitted"] == now["requests_finished"]
