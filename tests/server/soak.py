"""Clients that keep a server busy with requests of every kind, and leave one in five before its answer is there."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import httpx

CHAT, COMPLETIONS, TOKENIZE = "/v1/chat/completions", "/v1/completions", "/tokenize"
CANCELLED_SHARE = 0.2
WATCHED = {"prompt": "The same answer every time", "seed": 7, "max_tokens": 24, "ignore_eos": True}
_SCHEMA = {"type": "object", "properties": {"a": {"enum": ["x", "y"]}}, "required": ["a"]}
_SHAPE = {"type": "json_schema", "json_schema": {"name": "a", "schema": _SCHEMA}}
EXPECTED, LEAST_SEEN = ("answered", "cancelled", "invalid", "watched"), 5
_MOST_S = 300.0  # that a slow machine takes for these
_ASKED_AGAIN_S = 0.05
_SPECULATIVE = ({"enabled": False}, {"draft_tokens": 3})
_WORDS = ("the", "hello", "and", "thing", "\u00e9", "\U0001f7e5")


class Soak:
    """A crowd of clients.

    Args:
        url: of the server.
        clients: at a time.
        seed: of what they ask.

    Attributes:
        seen: how often each thing happened: `answered`, `cancelled`, `refused` (429), `invalid`, `watched`.
        faults: what must not happen, in words.
        watched: texts of the request that always gets the same answer.
    """

    def __init__(self, url: str, clients: int, seed: int) -> None:
        self.seen: Counter[str] = Counter()
        self.faults: list[str] = []
        self.watched: set[str] = set()
        self._url = url
        self._clients = clients
        self._seed = seed

    def run(self, duration_s: float, sample: Callable[[], None], every_s: float) -> None:
        """Ask for so long, and until each of `EXPECTED` was seen a few times; call `sample` as often meanwhile. Ends
        when every client has its answer."""
        asyncio.run(self._run(duration_s, sample, every_s))

    async def _run(self, duration_s: float, sample: Callable[[], None], every_s: float) -> None:
        until = time.monotonic() + duration_s
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=self._clients)
        async with httpx.AsyncClient(base_url=self._url, timeout=300, trust_env=False, limits=limits) as client:
            asking = [asyncio.create_task(self._ask(client, number, until)) for number in range(self._clients)]
            while self._goes_on(until):
                await asyncio.sleep(every_s)
                sample()
            await asyncio.gather(*asking)

    def _goes_on(self, until: float) -> bool:
        now = time.monotonic()
        lacks = min(self.seen[what] for what in EXPECTED) < LEAST_SEEN
        return now < until or (lacks and now < until + _MOST_S)

    async def _ask(self, client: httpx.AsyncClient, number: int, until: float) -> None:
        chance = random.Random(self._seed * 1000 + number)
        while self._goes_on(until):
            try:
                await self._ask_once(client, chance)
            except httpx.HTTPError as error:
                self.faults.append(repr(error))

    async def _ask_once(self, client: httpx.AsyncClient, chance: random.Random) -> None:
        kind = chance.random()
        if kind < 0.1:
            await self._watch(client)
        elif kind < 0.15:
            await self._look_up(client, chance)
        elif kind < 0.2:
            await self._err(client, chance)
        else:
            path, body = _body(chance)
            stream = chance.random() < 0.6
            leaves = chance.random() < CANCELLED_SHARE / 0.8
            ask = self._stream if stream else self._whole
            # Soon, or as soon as there is something to read: a fast machine does not keep anybody waiting.
            leave_s = chance.choice([0.001, chance.random() / 10])
            await ask(client, path, {**body, "stream": stream}, leave_s if leaves else None)

    async def _watch(self, client: httpx.AsyncClient) -> None:
        response = await client.post(COMPLETIONS, json=WATCHED)
        if await self._is_answered(response):
            self.seen["watched"] += 1
            self.watched.add(response.json()["choices"][0]["text"])

    async def _look_up(self, client: httpx.AsyncClient, chance: random.Random) -> None:
        response = await client.post(TOKENIZE, json={"prompt": _words(chance)})
        if response.status_code != 200:
            self.faults.append(response.text)

    async def _err(self, client: httpx.AsyncClient, chance: random.Random) -> None:
        wrong = chance.choice([{"messages": []}, {"n": 10**6}, {"unknown": 1}, {"messages": "\u00e9" * 100_000}])
        response = await client.post(CHAT, json=wrong)
        self.seen["invalid"] += 1
        if response.status_code != 400 or set(response.json()) != {"error"}:
            self.faults.append(f"{response.status_code} {response.text}")

    async def _whole(self, client: httpx.AsyncClient, path: str, body: dict[str, Any], leave_s: float | None) -> None:
        try:
            response = await asyncio.wait_for(client.post(path, json=body), leave_s)
        except asyncio.TimeoutError:
            self.seen["cancelled"] += 1
            return
        if await self._is_answered(response) and len(response.json()["choices"]) != body.get("n", 1):
            self.faults.append(response.text)

    async def _stream(self, client: httpx.AsyncClient, path: str, body: dict[str, Any], leave_s: float | None) -> None:
        leaves_at = float("inf") if leave_s is None else time.monotonic() + leave_s
        async with client.stream("POST", path, json=body) as response:
            last = ""
            async for line in response.aiter_lines():
                last = line or last
                if time.monotonic() > leaves_at and response.status_code == 200:
                    self.seen["cancelled"] += 1
                    return
            if await self._is_answered(response) and last != "data: [DONE]":
                self.faults.append(last)

    async def _is_answered(self, response: httpx.Response) -> bool:
        if response.status_code == 429:
            self.seen["refused"] += 1
            await asyncio.sleep(_ASKED_AGAIN_S)
        elif response.status_code == 200:
            self.seen["answered"] += 1
        else:
            self.faults.append(f"{response.status_code} {(await response.aread()).decode()}")
        return response.status_code == 200


def _words(chance: random.Random) -> str:
    return " ".join(
        chance.choices(["the", "hello", "and", "thing", "\u00e9", "\U0001f7e5"], k=chance.choice([3, 30, 80]))
    )


def _body(chance: random.Random) -> tuple[str, dict[str, Any]]:
    body: dict[str, Any] = {"max_tokens": chance.randint(1, 48), "ignore_eos": True}
    body |= chance.choice([{}, {"temperature": 0}, {"seed": 3}, {"top_p": 0.9, "frequency_penalty": 0.5}])
    body |= chance.choice([{}, {"n": 2}, {"stop": "e"}, *({"speculative": each} for each in _SPECULATIVE)])
    if chance.random() < 0.5:
        return COMPLETIONS, {**body, "prompt": _words(chance), **chance.choice([{}, {"logprobs": 2}])}
    shape = {"response_format": _SHAPE, "ignore_eos": False} if chance.random() < 0.2 else {}
    return CHAT, {**body, "messages": [{"role": "user", "content": _words(chance)}], **shape}


def describe(soak: Soak) -> str:
    """What happened, for whoever reads why a test failed."""
    return json.dumps({"seen": dict(soak.seen), "faults": soak.faults[:5], "watched": len(soak.watched)})
