"""From what clients saw to the numbers of a load test. Percentiles are over answers that came whole."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from borrador.bench.client import Answer
from borrador.bench.load import Block, Level, Outcome, Series
from borrador.bench.statistics import Interval, interval_of
from borrador.types import Float64Array

PERCENTS = (50, 95, 99)
_EXCERPT = 24
_FEWEST_BLOCKS = 4  # that tell anything of their spread


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Of seconds; None where there are no values."""

    p50: float
    p95: float
    p99: float

    @classmethod
    def of(cls, seconds: Iterable[float | None]) -> Percentiles | None:
        """Between two values that a percentile falls between, it is interpolated."""
        values = [value for value in seconds if value is not None]
        return cls(*(float(value) for value in np.percentile(values, PERCENTS))) if values else None

    def as_json(self) -> dict[str, float]:
        return {name: round(getattr(self, name), 6) for name in ("p50", "p95", "p99")}


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesReport:
    """One way of asking at one level.

    Attributes:
        speculate: with drafts or without; None leaves that to the server.
        ok: answers that came whole.
        rejected: requests that a busy server refused with status 429.
        failed: requests that ended in any other error.
        tokens: in all answers that came whole.
        tokens_per_second: of all clients together.
        first_token: from the question to the first text (TTFT).
        per_token: from then to the end, for each further token (TPOT).
        whole: from the question to the end of the answer.
    """

    speculate: bool | None
    ok: int
    rejected: int
    failed: int
    tokens: int
    tokens_per_second: float
    first_token: Percentiles | None
    per_token: Percentiles | None
    whole: Percentiles | None

    @classmethod
    def of(cls, series: Series) -> SeriesReport:
        answers = [outcome.answer for outcome in series.outcomes if outcome.answer is not None]
        rejected = sum(outcome.rejected for outcome in series.outcomes)
        return cls(
            speculate=series.speculate,
            ok=len(answers),
            rejected=rejected,
            failed=len(series.outcomes) - len(answers) - rejected,
            tokens=series.tokens,
            tokens_per_second=series.tokens / series.seconds if series.seconds else 0.0,
            first_token=Percentiles.of(answer.first_token_s for answer in answers),
            per_token=Percentiles.of(answer.token_s for answer in answers),
            whole=Percentiles.of(answer.end_s for answer in answers),
        )

    def as_json(self) -> dict[str, Any]:
        timed = (("ttft_s", self.first_token), ("tpot_s", self.per_token), ("e2e_s", self.whole))
        return {
            "speculation": self.speculate,
            "ok": self.ok,
            "rejected_429": self.rejected,
            "failed": self.failed,
            "tokens": self.tokens,
            "tokens_per_second": round(self.tokens_per_second, 3),
            **{name: None if seconds is None else seconds.as_json() for name, seconds in timed},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelReport:
    """So many clients at a time.

    Attributes:
        clients: at a time.
        series: with drafts, then without; or the only one.
        ratio: throughput with drafts over that without; None where that is not known.
        interval: that holds the ratio with 95 % confidence, by the pairs of blocks; None where there are fewer than 4,
            or a block had no answer.
        compared: questions with an answer in both ways.
        identical: of them, those with the same text.
        difference: a sentence about the first that has not; None where all have.
    """

    clients: int
    series: tuple[SeriesReport, ...]
    ratio: float | None = None
    interval: Interval | None = None
    compared: int = 0
    identical: int = 0
    difference: str | None = None

    @classmethod
    def of(cls, level: Level) -> LevelReport:
        series = tuple(map(SeriesReport.of, level.series))
        if len(level.series) == 1:
            return cls(clients=level.clients, series=series)
        drafted, plain = series
        speeds = drafted.tokens_per_second, plain.tokens_per_second
        pairs = _pairs(*level.series)
        different = [pair for pair in pairs if pair[0].text != pair[1].text]
        return cls(
            clients=level.clients,
            series=series,
            ratio=speeds[0] / speeds[1] if all(speeds) else None,
            interval=_interval(*level.series),
            compared=len(pairs),
            identical=len(pairs) - len(different),
            difference=_describe_difference(level.clients, *different[0]) if different else None,
        )

    def as_json(self) -> dict[str, Any]:
        level = {"clients": self.clients, "series": [series.as_json() for series in self.series]}
        if len(self.series) == 1:
            return level
        ratio = None if self.ratio is None else round(self.ratio, 4)
        interval = None if self.interval is None else [round(bound, 4) for bound in self.interval]
        compared = {"compared": self.compared, "identical": self.identical}
        return {**level, "ratio": ratio, "interval": interval, **compared}


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadReport:
    """A whole load test.

    Attributes:
        levels: in the order in which they were run.
        counts: `usage` where the server counted all tokens, `events` where it did not and events with text are counted.
        first_failure: a sentence about the first request that failed; None where none did.
    """

    levels: tuple[LevelReport, ...]
    counts: str
    first_failure: str | None

    @classmethod
    def of(cls, levels: Sequence[Level]) -> LoadReport:
        outcomes = [outcome for level in levels for series in level.series for outcome in series.outcomes]
        answers = [outcome.answer for outcome in outcomes if outcome.answer is not None]
        failures = (str(outcome.error) for outcome in outcomes if _failed(outcome))
        return cls(
            levels=tuple(map(LevelReport.of, levels)),
            counts="usage" if all(answer.from_usage for answer in answers) else "events",
            first_failure=next(failures, None),
        )

    @property
    def requests(self) -> int:
        return sum(series.ok + series.rejected + series.failed for level in self.levels for series in level.series)

    @property
    def failed(self) -> int:
        return sum(series.failed for level in self.levels for series in level.series)

    @property
    def difference(self) -> str | None:
        """A sentence about the first answer that drafts changed."""
        return next((level.difference for level in self.levels if level.difference is not None), None)

    def as_json(self) -> dict[str, Any]:
        return {"tokens_from": self.counts, "levels": [level.as_json() for level in self.levels]}


def _failed(outcome: Outcome) -> bool:
    return outcome.error is not None and not outcome.rejected


def _interval(drafted: Series, plain: Series) -> Interval | None:
    """Pairs of blocks are drawn, not questions: those that are answered at the same time depend on each other."""
    pairs = [(*_counts(left), *_counts(right)) for left, right in zip(drafted.blocks, plain.blocks, strict=True)]
    if len(pairs) < _FEWEST_BLOCKS or not all(map(all, pairs)):
        return None
    return interval_of(np.array(pairs, np.float64), _ratio_of_sums)


def _counts(block: Block) -> tuple[int, float]:
    return block.tokens, block.seconds


def _ratio_of_sums(drawn: Float64Array) -> Float64Array:
    tokens, seconds, plain_tokens, plain_s = np.moveaxis(drawn.sum(axis=1), -1, 0)
    return np.asarray(tokens / seconds * plain_s / plain_tokens)


def _pairs(drafted: Series, plain: Series) -> list[tuple[Answer, Answer, Outcome]]:
    """The answers to the questions that were answered in both ways."""
    known = {outcome.question.number: outcome.answer for outcome in plain.outcomes}
    pairs = [(outcome.answer, known.get(outcome.question.number), outcome) for outcome in drafted.outcomes]
    return [(left, right, outcome) for left, right, outcome in pairs if left is not None and right is not None]


def _describe_difference(clients: int, drafted: Answer, plain: Answer, outcome: Outcome) -> str:
    left, right = drafted.text, plain.text
    at = next((i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))
    which = f"{outcome.question.prompt.id} (request {outcome.question.number})"
    return (
        f"with {clients} clients, the answer to {which} differs"
        f" at character {at}: {left[at : at + _EXCERPT]!r} with drafts, {right[at : at + _EXCERPT]!r} without"
    )
