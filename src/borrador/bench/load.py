"""A load test: more and more clients, each of which asks its next question when it has its answer.

Where a server can be told how to draft, every question is asked with drafts and without. Blocks of questions alternate,
and the order of the two changes from block to block: what heats up, fills a cache or slows down favours neither.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice
from typing import TYPE_CHECKING

from borrador.bench.client import TOO_MANY_REQUESTS, Answer, LoadClient
from borrador.bench.prompts import BenchPrompt
from borrador.errors import BorradorError, UsageError
from borrador.remote.refusal import RefusedError

if TYPE_CHECKING:
    from borrador.remote.address import Address

Ask = Callable[[str, bool | None], Awaitable[Answer]]

MOST_CLIENTS = 1024
_MOST_BLOCKS = 16
_LEAST_ROUNDS = 2  # of all clients in a block: at its end, some of them have nothing left to ask
_FEWEST_REQUESTS = 8
_LONGEST_PAUSE_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadPlan:
    """What to ask of a server; checked when built.

    Attributes:
        clients: at a time, level by level.
        requests: of each level and series; None is twice the clients, at least 8.
        max_tokens: of every answer.

    Raises:
        UsageError: a value breaks its rule, or there are too few requests to keep all clients busy.
    """

    clients: tuple[int, ...]
    requests: int | None = None
    max_tokens: int = 128

    def __post_init__(self) -> None:
        if not self.clients or not all(1 <= clients <= MOST_CLIENTS for clients in self.clients):
            raise UsageError(
                f"--concurrency must be numbers from 1 to {MOST_CLIENTS}, got {','.join(map(str, self.clients))[:80]}",
                "For example: --concurrency 1,4,16.",
            )
        least = 2 * max(self.clients)
        if self.requests is not None and self.requests < least:
            raise UsageError(
                f"--requests must be at least twice the most clients, {least}, got {self.requests}",
                "Ask for more requests, or for fewer clients with --concurrency.",
            )

    def requests_at(self, clients: int) -> int:
        """How many requests a level has in each series."""
        return self.requests or max(_FEWEST_REQUESTS, 2 * clients)


@dataclass(frozen=True, slots=True)
class Question:
    """A request: what to ask, and its number among all of them."""

    number: int
    prompt: BenchPrompt

    @property
    def text(self) -> str:
        """With its number in front: no cache of prompts knows its answer beforehand."""
        return f"Request {self.number}. {self.prompt.text}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a question: an answer, or an error."""

    question: Question
    answer: Answer | None = None
    error: BorradorError | None = None

    @property
    def rejected(self) -> bool:
        """The server was busy, and said so."""
        return isinstance(self.error, RefusedError) and self.error.status == TOO_MANY_REQUESTS


@dataclass(slots=True)
class Block:
    """Questions that were asked in one way without a break.

    Attributes:
        outcomes: of the questions, in the order in which they ended.
        seconds: that it took.
    """

    outcomes: list[Outcome] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def tokens(self) -> int:
        """In all answers that came whole."""
        return sum(outcome.answer.tokens for outcome in self.outcomes if outcome.answer is not None)


@dataclass(slots=True)
class Series:
    """All questions of a level that were asked in one way.

    Attributes:
        speculate: with drafts or without; None leaves that to the server.
        blocks: of questions; where there are two ways, the same ones in both.
    """

    speculate: bool | None
    blocks: list[Block] = field(default_factory=list)

    @property
    def outcomes(self) -> list[Outcome]:
        return [outcome for block in self.blocks for outcome in block.outcomes]

    @property
    def seconds(self) -> float:
        return sum(block.seconds for block in self.blocks)

    @property
    def tokens(self) -> int:
        return sum(block.tokens for block in self.blocks)


@dataclass(frozen=True, slots=True)
class Level:
    """So many clients at a time, and what they saw: one series, or with drafts and without."""

    clients: int
    series: tuple[Series, ...]


def run_load(
    address: Address,
    model: str,
    plan: LoadPlan,
    prompts: Sequence[BenchPrompt],
    *,
    both: bool,
    notice: Callable[[Level], None],
) -> list[Level]:
    """Ask a server level by level, after an answer in each way that is not measured.

    Args:
        address: of the server.
        model: by the server's name for it.
        plan: what to ask.
        prompts: in turn.
        both: with drafts and without.
        notice: told of every level that is done.

    Raises:
        BorradorError: the server does not answer at all.
    """
    return asyncio.run(_run(address, model, plan, prompts, both, notice))


async def _run(
    address: Address,
    model: str,
    plan: LoadPlan,
    prompts: Sequence[BenchPrompt],
    both: bool,
    notice: Callable[[Level], None],
) -> list[Level]:
    from borrador.remote.connection import open_async_client

    levels: list[Level] = []
    async with open_async_client(address) as http:
        client = LoadClient(http, address, model, plan.max_tokens)
        async for level in run_levels(client.ask, plan, prompts, both=both):
            levels.append(level)
            notice(level)
    return levels


async def run_levels(ask: Ask, plan: LoadPlan, prompts: Sequence[BenchPrompt], *, both: bool) -> AsyncIterator[Level]:
    """The levels of a plan, one after another; arguments and errors as for `run_load`.

    Where there are two ways, a level begins with a question of every client in each that is not measured: a cache that
    has room yet would keep what the first way asked for the second, and later blocks would not make up for it.
    """
    ways = (True, False) if both else (None,)
    questions = (Question(number, prompt) for number, prompt in enumerate(cycle(prompts)))
    for way in ways:
        await ask(next(questions).text, way)
    for clients in plan.clients:
        level = Level(clients, tuple(Series(way) for way in ways))
        for way in ways if both else ():
            await _ask_block(ask, Series(way), list(islice(questions, clients)), clients)
        for index, block in enumerate(_divide(list(islice(questions, plan.requests_at(clients))), clients)):
            for series in level.series if index % 2 == 0 else reversed(level.series):
                await _ask_block(ask, series, block, clients)
        yield level


async def _ask_block(ask: Ask, series: Series, questions: Sequence[Question], clients: int) -> None:
    loop = asyncio.get_running_loop()
    start = loop.time()
    pending, asked = iter(questions), Block()
    await asyncio.gather(*(_be_a_client(ask, series.speculate, pending, asked.outcomes) for _ in range(clients)))
    asked.seconds = loop.time() - start
    series.blocks.append(asked)


async def _be_a_client(ask: Ask, speculate: bool | None, pending: Iterator[Question], outcomes: list[Outcome]) -> None:
    """Ask one question after another, and wait where a busy server asks for it."""
    for question in pending:
        outcome = await _ask_one(ask, question, speculate)
        outcomes.append(outcome)
        if isinstance(outcome.error, RefusedError) and outcome.rejected:
            await asyncio.sleep(min(outcome.error.pause_s, _LONGEST_PAUSE_S))


async def _ask_one(ask: Ask, question: Question, speculate: bool | None) -> Outcome:
    try:
        return Outcome(question, answer=await ask(question.text, speculate))
    except BorradorError as error:
        return Outcome(question, error=error)


def _divide(questions: Sequence[Question], clients: int) -> Iterator[Sequence[Question]]:
    """Blocks of about equal size, an even number of them, so that each series is the first as often as the other."""
    blocks = min(max(len(questions) // (_LEAST_ROUNDS * clients) // 2, 1) * 2, _MOST_BLOCKS)
    for index in range(blocks):
        yield questions[index * len(questions) // blocks : (index + 1) * len(questions) // blocks]
