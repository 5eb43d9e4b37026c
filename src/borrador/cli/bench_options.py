"""Options of `borrador bench`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, get_args

import typer

from borrador.bench.prompts import DEFAULT_PROMPTS, BenchPrompt, Start, load_prompts
from borrador.cli import options as opt

# A whole function with its docstring is longer than what speed needs.
SCORED_TOKENS: Final = 512
CLIENTS: Final = "1,2,4,8,16,32,64"


def _parse_numbers(text: str) -> str:
    """Whole numbers between commas, each of them once."""
    return ",".join(dict.fromkeys(str(opt.parse_integer(part)) for part in text.split(",")))


def _parse_start(text: str) -> Start:
    words: tuple[Start, ...] = get_args(Start)
    return opt.parse_word(text, words)


PromptsOption = Annotated[
    Path | None,
    typer.Option(
        "--prompts",
        metavar="FILE",
        help="JSON Lines with id, task, turns; Spec-Bench's or HumanEval's file; or text, a prompt per paragraph. Also"
        " .gz.  [default: a set of our own]",
    ),
]
PerTaskOption = Annotated[
    int | None,
    typer.Option("--per-task", metavar="N", parser=opt.at_least(1), help="Only the first N of each task."),
]
RepeatsOption = Annotated[
    int,
    typer.Option("--repeats", metavar="N", parser=opt.at_least(1), help="Answer each prompt N times both ways."),
]
StartOption = Annotated[
    Start,
    typer.Option(
        "--start",
        metavar="carried|cold|warm",
        parser=_parse_start,
        help="What drafters know before a prompt: what earlier prompts taught them (carried), nothing (cold), or what"
        " the other half of the prompts taught them, which is not measured (warm).",
    ),
]
SaveOption = Annotated[
    Path | None,
    typer.Option("--save", metavar="FILE.json", help="Save every run, with machine, models, versions and T(m)."),
]
ReportOption = Annotated[
    Path | None,
    typer.Option("--report", metavar="FILE.html", help="Also write a page with charts that needs no other file."),
]
ScoreOption = Annotated[
    bool,
    typer.Option(
        "--score",
        help="Run the tests of HumanEval's problems on the answers, in a sandbox, and report how many pass. Without"
        " --prompts: 10 problems of our own. Without --max-tokens: 512 tokens.",
    ),
]
ConcurrencyOption = Annotated[
    str,
    typer.Option(
        "--concurrency",
        metavar="N,N,...",
        parser=_parse_numbers,
        help="With --url: numbers of clients, one level after another.",
    ),
]
RequestsOption = Annotated[
    int | None,
    typer.Option(
        "--requests",
        metavar="N",
        parser=opt.parse_count,
        help="With --url: requests per level.  [default: twice the clients, at least 8]",
    ),
]


@dataclass(frozen=True, kw_only=True)
class PromptOptions:
    """The prompts that are answered."""

    prompts: PromptsOption = None
    per_task: PerTaskOption = None

    def load(self) -> Sequence[BenchPrompt]:
        """Those of the file, or of our own set. Raises UsageError as `load_prompts` does."""
        return load_prompts(self.prompts or DEFAULT_PROMPTS, self.per_task)


@dataclass(frozen=True, kw_only=True)
class LoadOptions:
    """The load on a server."""

    concurrency: ConcurrencyOption = CLIENTS
    requests: RequestsOption = None


@dataclass(frozen=True, kw_only=True)
class ResultOptions:
    """What becomes of the answers besides their speed."""

    save: SaveOption = None
    report: ReportOption = None
    score: ScoreOption = False
