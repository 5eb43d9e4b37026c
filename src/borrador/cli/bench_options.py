"""Options of `borrador bench`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, get_args

import typer

from borrador.bench.prompts import Start
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
        help="JSON Lines with id, task, turns; Spec-Bench's or HumanEval's; or paragraphs of text. Also .gz."
        "  [default: a set of our own]",
    ),
]
PerTaskOption = Annotated[
    int | None,
    typer.Option("--per-task", metavar="N", parser=opt.at_least(1), help="Only the first N of each task."),
]
RepeatsOption = Annotated[
    int,
    typer.Option("--repeats", metavar="N", parser=opt.at_least(1), help="Answer each prompt N times in both ways."),
]
StartOption = Annotated[
    Start,
    typer.Option(
        "--start",
        metavar="carried|cold|warm",
        parser=_parse_start,
        help="What drafters know when they meet a prompt: what those before it taught; nothing; or what the other half"
        " of the prompts taught, which is not measured.",
    ),
]
SaveOption = Annotated[
    Path | None,
    typer.Option("--save", metavar="FILE.json", help="Keep every run, with machine, models, versions and T(m)."),
]
ReportOption = Annotated[
    Path | None,
    typer.Option("--report", metavar="FILE.html", help="Also write a page with charts, which needs no other file."),
]
ScoreOption = Annotated[
    bool,
    typer.Option(
        "--score",
        help="Run the prompts' own tests on the code in the answers, in a sandbox, and say how many pass: HumanEval's,"
        " or 10 problems of our own without --prompts. Answers get 512 tokens without --max-tokens.",
    ),
]
ConcurrencyOption = Annotated[
    str,
    typer.Option(
        "--concurrency",
        metavar="N,N,...",
        parser=_parse_numbers,
        help="With --url: clients at a time, one after another.",
    ),
]
RequestsOption = Annotated[
    int | None,
    typer.Option(
        "--requests",
        metavar="N",
        parser=opt.parse_count,
        help="With --url: requests of each level.  [default: twice the clients, at least 8]",
    ),
]
