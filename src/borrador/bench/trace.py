"""Answers as they were decoded, and what is counted of them."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from borrador.bench.prompts import BenchPrompt
from borrador.bench.runs import count_by_position
from borrador.engine.candidates import Load
from borrador.engine.stats import fate_of
from borrador.types import RoundRecord


@dataclass(frozen=True, slots=True)
class Trace:
    """An answer and how it was decoded.

    Attributes:
        prompt: the question.
        prompt_tokens: how long it is.
        token_ids: the answer.
        rounds: without the first, which belongs to the prompt.
    """

    prompt: BenchPrompt
    prompt_tokens: int
    token_ids: tuple[int, ...]
    rounds: tuple[RoundRecord, ...]

    @property
    def decode_s(self) -> float:
        return sum(record.total_s for record in self.rounds)

    @property
    def decoded(self) -> int:
        """Tokens that decoding wrote; the first one came out of the prompt's pass."""
        return sum(len(record.committed) for record in self.rounds)

    @property
    def load(self) -> Load:
        """Of its passes, on average."""
        return Load(context=self.prompt_tokens + len(self.token_ids) / 2)

    @property
    def pass_s(self) -> float:
        """Seconds of a typical pass; 0 where there was none."""
        return median(record.forward_s for record in self.rounds)

    @property
    def beside_s(self) -> float:
        """What a typical round took beside drafting and the pass."""
        return median(record.total_s - record.draft_s - record.forward_s for record in self.rounds)


class Tally(NamedTuple):
    """Decoding of some answers in one way, against plain decoding of the same.

    Attributes:
        tokens: that were decoded.
        passes: of the target.
        seconds: that it took.
        plain_s: seconds of plain decoding.
    """

    tokens: int = 0
    passes: int = 0
    seconds: float = 0.0
    plain_s: float = 0.0

    @property
    def tokens_per_pass(self) -> float:
        return self.tokens / self.passes if self.passes else 0.0

    @property
    def speedup(self) -> float:
        return self.plain_s / self.seconds if self.seconds else 0.0


def total(tallies: Iterable[Tally]) -> Tally:
    """All of them as one."""
    tokens, passes, seconds, plain_s = (sum(column) for column in zip(Tally(), *tallies, strict=True))
    return Tally(int(tokens), int(passes), seconds, plain_s)


def tally(trace: Trace, plain: Trace) -> Tally:
    """What was measured."""
    return Tally(trace.decoded, len(trace.rounds), trace.decode_s, plain.decode_s)


def acceptance_by_position(traces: Iterable[Trace]) -> tuple[float, ...]:
    """Of the tokens tested at each place of a draft, beginning with the first, the share that was accepted."""
    tested, accepted = count_by_position(record for trace in traces for record in trace.rounds)
    return tuple(right / count for right, count in zip(accepted, tested, strict=True))


def acceptance(traces: Iterable[Trace]) -> float | None:
    """Accepted / tested; None where nothing was tested."""
    fates = [fate_of(record) for trace in traces for record in trace.rounds]
    tested = sum(count for count, _ in fates)
    return sum(accepted for _, accepted in fates) / tested if tested else None


def median(values: Iterable[float]) -> float:
    """Of no values 0."""
    known = list(values)
    return statistics.median(known) if known else 0.0
