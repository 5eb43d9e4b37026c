"""`borrador plan`: which drafters and which draft length suit a model on this machine."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from borrador.bench.prompts import DEFAULT_PROMPTS, Halves, load_prompts, require_room
from borrador.cli import options as opt
from borrador.cli.models import find_model
from borrador.cli.option_groups import DraftOptions, MachineOptions, engine_config
from borrador.cli.output import (
    counted,
    error_console,
    make_console,
    make_table,
    print_json,
    print_table,
    print_wrapped,
    standard_output,
)
from borrador.config import EngineConfig
from borrador.draft.plugin import find_plugins
from borrador.draft.registry import BUILT_IN, expand_specs
from borrador.errors import BorradorError, UsageError, VerificationError
from borrador.models.catalogue import CATALOGUE
from borrador.types import SamplingParams

if TYPE_CHECKING:
    from borrador.bench.findings import Line, Measured, Plan
    from borrador.bench.lineup import Lineup, Way
    from borrador.bench.plan import Announce, Planning
    from borrador.engine.loading import Parts
    from borrador.engine.profile import HeldProfile

_LEAST_TOKENS = 8
_NAME_WIDTH = 22


def plan(
    model: opt.ModelOption = opt.MODEL,
    draft: opt.DraftOption = None,
    prompts: Annotated[
        Path | None,
        typer.Option("--prompts", metavar="FILE", help="As for bench.  [default: a set of our own]"),
    ] = None,
    per_task: Annotated[
        int, typer.Option("--per-task", metavar="N", parser=opt.at_least(1), help="Only the first N of each task.")
    ] = 4,
    max_tokens: opt.MaxTokensOption = 64,
    threads: opt.ThreadsOption = opt.ENGINE.threads,
    context: opt.ContextOption = opt.ENGINE.context,
    save: Annotated[
        bool, typer.Option("--save/--no-save", help="Let other commands follow the recommendation unless -d is given.")
    ] = True,
    json: opt.JsonOption = False,
    quiet: opt.QuietOption = False,
) -> None:
    """Find the drafters and the draft length that suit a model on this machine.

    One half of the prompts tells what drafts cost and how often they are right, which predicts the speed-up of every
    draft length. The other half, unseen until then, is decoded plainly, with each drafter at its best length, and with
    lengths chosen by costs. The fastest of these is recommended, and saved in the model's profile.

    Ends with exit code 5, and saves nothing, if a draft changed any answer.
    """
    if max_tokens < _LEAST_TOKENS:
        raise UsageError(
            f"--max-tokens must be at least {_LEAST_TOKENS} to see drafts at work, got {max_tokens}",
            "The default is 64.",
        )
    config = engine_config(DraftOptions(draft=draft), MachineOptions(threads=threads, context=context, profile=save))
    if not expand_specs(config.draft):
        raise UsageError("a plan compares drafters, and --draft is none", "Name some with -d, or leave it out.")
    chosen = load_prompts(prompts or DEFAULT_PROMPTS, per_task)
    halves = Halves.of(chosen)
    output = standard_output()
    parts, held = open_parts(model, config, quiet=quiet)
    with _line_up(parts, held) as lineup:
        found = _prepare(lineup, halves, SamplingParams(max_tokens=max_tokens), quiet=quiet).plan()
    print_plan(found)
    if json:
        print_json({"model": model, **found.as_json()})
    output.flush()
    _require_identical(found)
    if held is not None:
        keep(held, found)
        if not quiet:
            error_console().print("saved: run, chat, serve and bench follow it unless -d is given", style="dim")


def open_parts(model: str, config: EngineConfig, *, quiet: bool) -> tuple[Parts, HeldProfile | None]:
    """Load the models, fetching those of the catalogue on first use; and where the plan is to be saved, its profile.

    Draft models get the names that they will have whatever the working folder is.
    """
    from borrador.engine.loading import open_parts as load_parts
    from borrador.engine.planner import COSTS
    from borrador.engine.profile import HeldProfile

    find_model(model, quiet=quiet)
    names = tuple(_lasting_name(name, quiet=quiet) for name in expand_specs(config.draft))
    parts = load_parts(model, replace(config, draft=names))
    return parts, None if parts.profile is None else HeldProfile(parts.profile, without=(COSTS,))


def keep(held: HeldProfile, found: Plan) -> None:
    """Save what is recommended, with what was learnt. Raises BorradorError where that fails."""
    from borrador.engine.settings import Settings

    line = found.recommended
    settings = Settings(
        draft=("none",) if line is None else line.way.drafters,
        draft_tokens=None if line is None else line.draft_tokens,
        speedup=found.speedup,
        date=date.today().isoformat(),
    )
    held.write({"settings": settings.as_json()})
    if not held.keep():
        raise BorradorError(
            f"the plan cannot be saved in {held.path}", "Make room there, or set BORRADOR_PROFILES to another folder."
        )


def print_plan(found: Plan) -> None:
    """Tables of all ways and of the tasks, and sentences below them."""
    costs = ", ".join(f"{cost:.2f} for {rows}" for rows, cost in found.row_costs.items() if rows > 1)
    print_table(tabulate_ways(found), f"a pass over one row takes {found.pass_s * 1e3:.1f} ms; T(m)/T(1): {costs}")
    output = standard_output()
    if found.tasks:
        output.write("\n")
        print_table(tabulate_tasks(found))
    output.write("\n")
    print_wrapped(make_console(output), describe(found))


def tabulate_ways(found: Plan) -> Table:
    """A row per way and draft length; the speed-up on unseen prompts for those that were tried on them."""
    table = make_table(left=("drafter",), right=("length", "accept", "c", "tok/pass", "predicted", "measured", "off"))
    for first, line in _with_first(found):
        facts = found.drafters[line.way.drafters[0]] if first and not line.way.by_costs else None
        table.add_row(
            name_way(line.way) if first else "",
            "costs" if line.draft_tokens is None else str(line.draft_tokens),
            "" if facts is None else _share(facts.acceptance),
            "" if facts is None else f"{facts.cost_ratio:.3f}",
            f"{line.predicted.tokens_per_pass:.2f}",
            f"{line.predicted.speedup:.2f}x",
            "" if line.measured is None else f"{line.measured.speedup:.2f}x",
            "" if line.error is None else f"{line.error:+.0%}",
        )
    return table


def tabulate_tasks(found: Plan) -> Table:
    """A row per task: what is recommended, there."""
    table = make_table(left=("task",), right=("acceptance", "predicted", "measured"))
    for task, facts in found.tasks.items():
        predicted = f"{facts.predicted.speedup:.2f}x" if facts.predicted.seconds else "-"
        measured = f"{facts.measured.speedup:.2f}x" if facts.measured is not None else "-"
        table.add_row(task, _share(facts.acceptance), predicted, measured)
    return table


def describe(found: Plan) -> str:
    """The recommendation."""
    identical = f"{found.identical} of {len(found.answers)} prompts answered identically in all ways"
    line = found.recommended
    if line is None:
        return f"recommended: no drafts, for none was faster; {identical}"
    length = "" if line.draft_tokens is None else f", draft length {line.draft_tokens}"
    return f"recommended: {line.way.describe()}{length}, {found.speedup:.2f}x; {identical}"


def _line_up(parts: Parts, held: HeldProfile | None) -> Lineup:
    from borrador.bench.lineup import Lineup

    return Lineup(parts, held)


def _prepare(lineup: Lineup, halves: Halves, params: SamplingParams, *, quiet: bool) -> Planning:
    """Check that the prompts fit, and say how long it will take."""
    from borrador.bench.plan import Planning

    prompts = (*halves.known, *halves.unseen)
    require_room(prompts, lineup.prompt_tokens, lineup.context_length)
    planning = Planning(lineup, halves, params, _progress(len(prompts), quiet=quiet))
    if not quiet:
        ways, time = counted(len(lineup.ways) + 1, "way"), _describe_time(planning.expected_s())
        error_console().print(f"{counted(len(prompts), 'prompt')} in {ways}: about {time}", style="dim")
    return planning


def _progress(count: int, *, quiet: bool) -> Announce:
    """A line for each prompt that is done."""
    console, numbers = error_console(), itertools.count(1)

    def announce(measured: Measured) -> None:
        if quiet:
            return
        speeds = ", ".join(f"{name_way(way)} {measured.speedup(way):.2f}x" for way in measured.answers)
        differing = measured.differing
        verdict = "identical" if differing is None else f"{differing.describe()} differs"
        line = f"{next(numbers)}/{count} {measured.prompt.id}: {speeds}, {verdict}"
        console.print(line, style="dim" if differing is None else "red")

    return announce


def _require_identical(found: Plan) -> None:
    for measured in found.answers:
        if measured.differing is not None:
            raise VerificationError(
                f"speculative decoding must not change an answer, but prompt {measured.prompt.id} differs with "
                f"{measured.differing.describe()}",
                "This is a bug in borrador; please report it with the prompt.",
            )


def _lasting_name(name: str, *, quiet: bool) -> str:
    """The name of a drafter; a model that is not in the catalogue is named by its absolute path."""
    if name in BUILT_IN or name in CATALOGUE or name in find_plugins():
        return name
    return str(find_model(name, quiet=quiet).absolute())


def _with_first(found: Plan) -> Iterator[tuple[bool, Line]]:
    """The lines, each with whether its way comes for the first time."""
    seen: set[Way] = set()
    for line in found.lines:
        yield line.way not in seen, line
        seen.add(line.way)


def name_way(way: Way) -> str:
    """A name that is short enough for a table: of a model the beginning of its file's name, of several drafters their
    number."""
    if len(way.drafters) == 1:
        path = Path(way.drafters[0])
        name = path.stem if path.suffix == ".gguf" else way.drafters[0]
        name = name if len(name) <= _NAME_WIDTH else f"{name[: _NAME_WIDTH - 2]}.."
    else:
        name = f"{len(way.drafters)} drafters"
    return f"{name}, costs" if way.by_costs else name


def _share(acceptance: float | None) -> str:
    return "-" if acceptance is None else f"{acceptance:.0%}"


def _describe_time(seconds: float) -> str:
    return counted(math.ceil(seconds / 60), "minute") if seconds > 90 else f"{seconds:.0f} seconds"
