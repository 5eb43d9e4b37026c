"""A benchmark's summary in rounded numbers and sentences. The record has the exact ones."""

from __future__ import annotations

from typing import Any

from borrador.bench.runs import DrafterFigures
from borrador.bench.summary import Divergence, Speeds, Summary, TaskSummary, TimeSplit


def as_json(summary: Summary) -> dict[str, Any]:
    """What `bench --json` prints. Speeds on the top level are those of decoding."""
    return {
        **_task(summary.total),
        "prefill_tok_s": round(summary.prefill_tok_s, 3),
        "drafters": [_drafter(figures) for figures in summary.drafters],
        "time": {"plain": _time(summary.plain_time), "speculative": _time(summary.spec_time)},
        "worst": None
        if summary.worst is None
        else {"prompt": summary.worst.prompt, "task": summary.worst.task, "speedup": round(summary.worst.speedup, 4)},
        "first_divergence": None if summary.first_divergence is None else _divergence(summary.first_divergence),
        "per_task": {task: _task(each) for task, each in summary.per_task.items()},
    }


def describe_divergence(found: Divergence) -> str:
    """One sentence."""
    plain, speculative = ("ended" if token is None else str(token) for token in (found.plain, found.speculative))
    return (
        f"speculative decoding must not change an answer, but prompt {found.prompt} differs at token {found.index}:"
        f" plain {plain}, speculative {speculative}"
    )


def _task(task: TaskSummary) -> dict[str, Any]:
    return {
        **_speeds(task.decode),
        "end_to_end": _speeds(task.end_to_end),
        "tokens_per_pass": round(task.tokens_per_pass, 4),
        "acceptance": None if task.acceptance is None else round(task.acceptance, 4),
        "prompts": task.prompts,
        "identical": task.identical,
    }


def _speeds(speeds: Speeds) -> dict[str, Any]:
    paired = speeds.paired
    return {
        "plain_tok_s": round(speeds.plain_tok_s, 3),
        "spec_tok_s": round(speeds.spec_tok_s, 3),
        "speedup": round(speeds.speedup, 4),
        "median_speedup": None if paired is None else round(paired.median, 4),
        "interval": None
        if paired is None or paired.interval is None
        else [round(bound, 4) for bound in paired.interval],
    }


def _drafter(figures: DrafterFigures) -> dict[str, Any]:
    return {
        "drafter": figures.drafter,
        "rounds": figures.rounds,
        "proposed": figures.proposed,
        "tested": list(figures.tested),
        "accepted": list(figures.accepted),
    }


def _time(split: TimeSplit) -> dict[str, float]:
    return {
        "draft_s": round(split.draft_s, 4),
        "forward_s": round(split.forward_s, 4),
        "sample_s": round(split.sample_s, 4),
        "other_s": round(split.other_s, 4),
    }


def _divergence(found: Divergence) -> dict[str, Any]:
    return {
        "prompt": found.prompt,
        "repeat": found.repeat,
        "index": found.index,
        "plain": found.plain,
        "speculative": found.speculative,
    }
