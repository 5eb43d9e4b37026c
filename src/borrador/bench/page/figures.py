"""What the page draws, each with the same numbers as a table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from borrador.bench.page import charts
from borrador.bench.page.charts import Bar, Measured, Series, Words
from borrador.bench.page.numbers import FORMS, Number, Places
from borrador.bench.page.tables import Cell, Table
from borrador.bench.record import Record
from borrador.bench.row_cost import RowCosts
from borrador.bench.summary import TaskSummary, TimeSplit

_MOST_GROUPS = 24
_PARTS = ("drafting", "target's passes", "choosing tokens", "other")


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A chart, a sentence about it, and its numbers."""

    words: Words
    note: str
    drawing: Markup
    table: Table | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Rounds of one stretch of the answers, `first` to `last` of each, over all speculative runs."""

    first: int
    last: int
    passes: int
    tokens: int

    @property
    def label(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first} to {self.last}"


def draw_figures(record: Record, places: Places) -> list[Figure]:
    """All that this record has something to say about."""
    figures = [_speedups(record), _time(record, places)]
    if record.summary.drafters:
        figures.append(_acceptance(record, places))
    if any(pair.speculative.rounds for pair in record.pairs):
        figures.append(_tokens_per_pass(record))
    if record.row_costs is not None:
        figures.append(_row_costs(record.row_costs, places))
    return figures


def _speedups(record: Record) -> Figure:
    summaries = {**record.summary.per_task, "all": record.summary.total}
    words = Words(
        name="speedups",
        title="Speed-up by task",
        description="Median of the prompts' speed-ups in decoding, with 95 % intervals, for each task and for all.",
    )
    rows = [_measured(task, summary) for task, summary in summaries.items()]
    return Figure(
        words=words,
        note="Dots are medians of the prompts' speed-ups in decoding, lines their 95 % intervals. 1 is plain decoding.",
        drawing=charts.draw_intervals(rows, 1.0, words, "{:g}x".format),
        table=None,
    )


def _measured(task: str, summary: TaskSummary) -> Measured:
    paired = summary.decode.paired
    if paired is None:
        return Measured(label=task, value=None, interval=None, text="-")
    return Measured(label=task, value=paired.median, interval=paired.interval, text=FORMS["times"](paired.median))


def _time(record: Record, places: Places) -> Figure:
    words = Words(
        name="time",
        title="Where the time went",
        description="Seconds of decoding all answers, plainly and with speculation, by what they were spent on.",
    )
    ways = {"plain": record.summary.plain_time, "speculative": record.summary.spec_time}
    bars = [Bar(label=way, parts=_parts(split), text=FORMS["seconds"](split.total_s)) for way, split in ways.items()]
    rows: list[list[Cell]] = [
        [
            label,
            *(
                cell
                for way, split in (("plain_time", ways["plain"]), ("spec_time", ways["speculative"]))
                for cell in (places.number("seconds", "summary", way, name), _share(getattr(split, name), split))
            ),
        ]
        for label, name in zip(_PARTS, ("draft_s", "forward_s", "sample_s", "other_s"), strict=True)
    ]
    return Figure(
        words=words,
        note="Without the prompts' own passes. A greedy choice is part of the pass.",
        drawing=charts.draw_bars(bars, _PARTS, words, FORMS["seconds"]),
        table=Table(head=("Part", "Plain", "of it", "Speculative", "of it"), rows=rows),
    )


def _parts(split: TimeSplit) -> tuple[float, ...]:
    return split.draft_s, split.forward_s, split.sample_s, split.other_s


def _share(part: float, split: TimeSplit) -> Number:
    return Number(part / split.total_s if split.total_s else None, "share")


def _acceptance(record: Record, places: Places) -> Figure:
    words = Words(
        name="acceptance",
        title="Acceptance by position",
        description="Share of tested draft tokens that were accepted, by position in the draft, for each drafter.",
    )
    drafters = record.summary.drafters
    drawn = sorted(drafters, key=lambda each: -each.rounds)[: charts.MOST_SERIES]
    series = [
        Series(
            label=each.drafter,
            points=[(position + 1, each.acceptance(position)) for position, tested in enumerate(each.tested) if tested],
        )
        for each in drawn
    ]
    rows: list[list[Cell]] = [
        [
            each.drafter,
            Number(position + 1, "count"),
            places.number("count", "summary", "drafters", index, "tested", position),
            places.number("count", "summary", "drafters", index, "accepted", position),
            Number(each.acceptance(position) if tested else None, "share"),
        ]
        for index, each in enumerate(drafters)
        for position, tested in enumerate(each.tested)
    ]
    left_out = f" Of {len(drafters)} those with the most rounds are drawn." if len(drawn) < len(drafters) else ""
    return Figure(
        words=words,
        note=f"A position is tested when all before it were accepted.{left_out}",
        drawing=charts.draw_lines(series, words, ("position in the draft", "accepted"), FORMS["share"], 1.0),
        table=Table(head=("Drafter", "Position", "Tested", "Accepted", "Share"), rows=rows),
    )


def _tokens_per_pass(record: Record) -> Figure:
    words = Words(
        name="rounds",
        title="Tokens per pass as answers go on",
        description="Mean tokens committed by a pass of the target, by the number of the round in its answer.",
    )
    groups = group_rounds(record)
    points = [((group.first + group.last) / 2, group.tokens / group.passes) for group in groups]
    rows: list[list[Cell]] = [
        [
            group.label,
            Number(group.passes, "count"),
            Number(group.tokens, "count"),
            Number(group.tokens / group.passes, "tokens"),
        ]
        for group in groups
    ]
    return Figure(
        words=words,
        note="Over all speculative runs. Later rounds are those of long answers only. Plain decoding commits 1.",
        drawing=charts.draw_lines(
            [Series(label="tokens per pass", points=points)], words, ("round of an answer", "tokens"), "{:g}".format
        ),
        table=Table(head=("Round", "Passes", "Tokens", "Tokens per pass"), rows=rows),
    )


def group_rounds(record: Record) -> list[Group]:
    """The rounds of all speculative runs by their number in their answer, at most 24 groups of equally many numbers."""
    answers = [pair.speculative.rounds for pair in record.pairs]
    longest = max(map(len, answers), default=0)
    width = max(math.ceil(longest / _MOST_GROUPS), 1)
    return [_group(answers, start, min(start + width, longest)) for start in range(0, longest, width)]


def _group(answers: Sequence[Sequence[Sequence[float]]], start: int, end: int) -> Group:
    members = [each for rounds in answers for each in rounds[start:end]]
    tokens = sum(int(each[0]) for each in members)
    return Group(first=start + 1, last=end, passes=len(members), tokens=tokens)


def _row_costs(costs: RowCosts, places: Places) -> Figure:
    words = Words(
        name="passes",
        title="What a pass costs, T(m)",
        description="Milliseconds of a target pass by its rows, and below them what memory and integer units allow.",
    )
    counts = list(costs.seconds)
    series = [
        Series(label="measured", points=[(rows, costs.seconds[rows] * 1e3) for rows in counts]),
        Series(
            label="weights / memory bandwidth",
            points=[(rows, costs.memory_limit * 1e3) for rows in counts],
            dots=False,
        ),
        Series(
            label="products / integer peak",
            points=[(rows, costs.integer_limit(rows) * 1e3) for rows in counts],
            dots=False,
        ),
    ]
    rows: list[list[Cell]] = [
        [
            str(count),
            places.number("milliseconds", "row_costs", "seconds", str(count)),
            Number(costs.ratio(count) if 1 in costs.seconds else None, "times"),
            Number(costs.limit(count), "milliseconds"),
            Number(costs.limit_share(count), "share"),
        ]
        for count in counts
    ]
    return Figure(
        words=words,
        note="The roofline is the higher of both limits: no pass can be faster on this machine.",
        drawing=charts.draw_lines(series, words, ("rows in one pass (m)", "milliseconds"), "{:g}".format),
        table=Table(head=("Rows", "T(m)", "T(m) / T(1)", "Limit", "of the limit"), rows=rows),
    )
