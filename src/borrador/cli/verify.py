"""`borrador verify`: proof on the user's own model that speculation changes nothing."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from borrador.bench.prompts import DEFAULT_PROMPTS, load_prompts
from borrador.cli import options as opt
from borrador.cli.models import find_models
from borrador.cli.option_groups import DraftOptions, MachineOptions, engine_config
from borrador.cli.output import error_console, make_table, print_json, print_table, standard_output
from borrador.config import EngineConfig
from borrador.draft.registry import expand_specs
from borrador.errors import BorradorError, VerificationError
from borrador.verify.extent import FULL, QUICK

if TYPE_CHECKING:
    from borrador.verify.report import Report, StepReport
    from borrador.verify.suite import Notice, OpenParts

BUG = "This is a bug in borrador; please report it with the prompt."
BROKEN = "It was broken on purpose, with --break-residual."


def verify(
    model: opt.ModelOption = opt.MODEL,
    draft: opt.DraftOption = None,
    prompts: Annotated[
        Path | None,
        typer.Option("--prompts", metavar="FILE", help="As for bench.  [default: a set of our own]"),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer answers: about a minute.")] = False,
    threads: opt.ThreadsOption = opt.ENGINE.threads,
    break_residual: Annotated[
        bool,
        typer.Option("--break-residual", help="Let step 4 judge by a wrong rule, to see it fail."),
    ] = False,
    json: opt.JsonOption = False,
    quiet: opt.QuietOption = False,
) -> None:
    """Check that speculation changes nothing on this model.

    Greedy and seeded answers must be those of plain decoding, with every drafter, draft length and number of threads.
    Logits must have the same bits whatever else is in the pass. Answers without a seed must follow the model's own
    distribution; as a control, a wrong rule must be caught.

    Ends with exit code 5 if anything differs.
    """
    config = engine_config(DraftOptions(draft=draft), MachineOptions(threads=threads, profile=False))
    drafters = expand_specs(config.draft)
    chosen = load_prompts(prompts or DEFAULT_PROMPTS)
    output = standard_output()
    open_parts = find_parts(model, config, quiet=quiet)

    from borrador.verify.suite import verify as take_steps

    start = time.perf_counter()
    report = take_steps(
        open_parts,
        thread_counts(threads, quick=quick),
        chosen,
        QUICK if quick else FULL,
        notice=_notice(quiet=quiet),
        break_residual=break_residual,
    )
    seconds = time.perf_counter() - start
    remarks = [remark for step in report.steps for remark in step.remarks]
    print_table(tabulate(report), *remarks, describe(report, model, seconds))
    if json:
        setup = {"model": model, "draft": list(drafters), "quick": quick}
        print_json({**setup, "seconds": round(seconds, 1), **report.as_json()})
    output.flush()
    _require_passed(report, BROKEN if break_residual else BUG)


def find_parts(model: str, config: EngineConfig, *, quiet: bool) -> OpenParts:
    """Find the models, fetching those of the catalogue on first use; what is given loads them with so many threads."""
    from borrador.engine.loading import open_parts

    find_models(model, config, quiet=quiet)
    return lambda threads: open_parts(model, replace(config, threads=threads))


def thread_counts(chosen: int | None, *, quick: bool) -> list[int]:
    """The chosen number of threads, or one for each core, and smaller ones to compare with; 2 where it is 1."""
    if chosen is None:
        from borrador import _native

        chosen = _native.usable_cores()
    others = [count for count in (1, 2, 3) if count != chosen and count <= max(chosen, 2)]
    return [chosen, *others[: 1 if quick else None]]


def tabulate(report: Report) -> Table:
    """A row per step."""
    table = make_table(left=("step", "result"), last="checked")
    for number, step in enumerate(report.steps, 1):
        table.add_row(f"{number} {step.name}", _result(step), step.checked)
    return table


def describe(report: Report, model: str, seconds: float) -> str:
    """The end of the report."""
    verdict = "speculation changes nothing" if report.passed else "not all is as it must be"
    threads = " and ".join(str(number) for number in report.threads)
    return f"{model}: {verdict}; compared {threads} threads, {seconds:.0f} s"


def _result(step: StepReport) -> str:
    if step.finding is not None:
        return "DIFFERS"
    return "same" if step.conclusive else "cannot tell"


def _notice(*, quiet: bool) -> Notice:
    console = error_console()
    return lambda sentence: None if quiet else console.print(sentence, style="dim")


def _require_passed(report: Report, hint: str) -> None:
    for number, step in enumerate(report.steps, 1):
        if step.finding is not None:
            raise VerificationError(
                f"speculation must change nothing, but step {number} ({step.name}) differs: {step.finding.describe()}",
                hint,
            )
    for number, step in enumerate(report.steps, 1):
        if not step.conclusive:
            raise BorradorError(
                f"step {number} ({step.name}) could not tell a wrong rule from a right one", "Try other --prompts."
            )
