"""What `borrador bench` prints of its summary."""

from __future__ import annotations

from collections.abc import Iterator

from rich.table import Table

from borrador.bench.record import Settings
from borrador.bench.runs import DrafterFigures
from borrador.bench.statistics import Interval
from borrador.bench.summary import Ratio, Summary, TaskSummary, TimeSplit
from borrador.cli.output import counted, make_table

_POSITIONS = 8


def tabulate(summary: Summary) -> Table:
    """A row per task and one for all; speeds in tokens per second of decoding."""
    table = make_table(left=("task",), right=("prompts", "plain", "spec", "speed-up", "median, 95 %", "end to end"))
    table.collapse_padding = True  # fits 80 columns
    for task, each in summary.per_task.items():
        table.add_row(task, *_cells(each))
    table.add_section()
    table.add_row("all", *_cells(summary.total))
    return table


def show_ratio(ratio: Ratio | None) -> str:
    """A median and its interval; `-` for what is not known."""
    if ratio is None:
        return "-"
    return f"{ratio.median:.2f}x {'-' if ratio.interval is None else show_interval(ratio.interval)}"


def show_interval(interval: Interval) -> str:
    return "-".join(f"{bound:.2f}" for bound in interval)


def describe(summary: Summary, settings: Settings) -> Iterator[str]:
    """What the table does not hold, in sentences."""
    total = summary.total
    acceptance = "-" if total.acceptance is None else f"{total.acceptance:.0%}"
    yield "plain and spec are tokens per second of decoding; the median is over prompts, with its 95 % interval"
    yield f"{total.tokens_per_pass:.2f} tokens per pass, acceptance {acceptance}"
    for figures in summary.drafters:
        yield _describe_drafter(figures)
    yield f"time of decoding: {_describe_time(summary.spec_time)}"
    yield f"time of plain decoding: {_describe_time(summary.plain_time)}"
    if summary.worst is not None:
        yield f"worst prompt: {summary.worst.prompt} ({summary.worst.task}), {summary.worst.speedup:.2f}x"
    yield f"prefill {summary.prefill_tok_s:.0f} tok/s, {_describe_equality(summary)}"
    yield from _describe_setup(settings)


def _cells(task: TaskSummary) -> tuple[str, ...]:
    decode, end_to_end = task.decode, task.end_to_end
    if not decode.plain_tok_s or not decode.spec_tok_s:
        return (str(task.prompts), *"-----")
    return (
        str(task.prompts),
        f"{decode.plain_tok_s:.1f}",
        f"{decode.spec_tok_s:.1f}",
        f"{decode.speedup:.2f}x",
        show_ratio(decode.paired),
        f"{end_to_end.speedup:.2f}x",
    )


def _describe_drafter(figures: DrafterFigures) -> str:
    positions = range(min(len(figures.tested), _POSITIONS))
    shares = " ".join(f"{figures.acceptance(position):.0%}" for position in positions)
    more = " ..." if len(figures.tested) > _POSITIONS else ""
    drafts = counted(figures.rounds, "draft")
    return f"{figures.drafter}: {drafts}, accepted by position {shares}{more}"


def _describe_time(split: TimeSplit) -> str:
    if not split.total_s:
        return "none"
    parts = {
        "draft": split.draft_s,
        "verify": split.forward_s,
        "sample": split.sample_s,
        "other": split.other_s,
    }
    return ", ".join(f"{name} {seconds / split.total_s:.1%}" for name, seconds in parts.items())


def _describe_equality(summary: Summary) -> str:
    identical = summary.total.identical
    if identical is None:
        return "answers are draws without a seed: not compared"
    return f"{identical} of {summary.total.prompts} answers identical"


def _describe_setup(settings: Settings) -> Iterator[str]:
    if settings.repeats > 1:
        yield f"each prompt was answered {settings.repeats} times in both ways, the median of them counts"
    if settings.start == "cold":
        yield "cold start: drafters had learnt nothing before each prompt"
    if settings.start == "warm":
        others = counted(len(settings.warm_up_prompts), "other prompt")
        yield f"warm start: drafters had learnt from {others}, not measured here, and from nothing else"
