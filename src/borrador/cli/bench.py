"""`borrador bench`: plain against speculative decoding on the same prompts, here or on a server under load."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import typer

from borrador.bench.prompts import DEFAULT_PROMPTS, OWN_PROBLEMS, BenchPrompt, Start
from borrador.cli import bench_options as own
from borrador.cli import options as opt
from borrador.cli import url_options as url_opt
from borrador.cli.bench_compare import compare
from borrador.cli.bench_report import report as write_report
from borrador.cli.option_groups import DraftOptions, MachineOptions, engine_config, spread_groups
from borrador.cli.output import error_console, print_wrapped, standard_output
from borrador.cli.run import follow_plan, open_llm
from borrador.errors import UsageError
from borrador.remote.address import Address
from borrador.types import SamplingParams

_WITH_URL = {"prompts", "per_task", "max_tokens", "json", "quiet"}

bench = typer.Typer(rich_markup_mode=None)
bench.command("compare")(compare)
bench.command("report")(write_report)


@bench.callback(invoke_without_command=True)
@spread_groups
def measure(
    *,
    command: typer.Context,
    model: opt.ModelOption = opt.MODEL,
    drafts: DraftOptions,
    server: url_opt.UrlOptions,
    load: own.LoadOptions,
    prompts: own.PromptOptions,
    repeats: own.RepeatsOption = 1,
    max_tokens: opt.MaxTokensOption = 128,
    temperature: opt.TemperatureOption = opt.SAMPLING.temperature,
    seed: opt.SeedOption = opt.SAMPLING.seed,
    start: own.StartOption = "carried",
    machine: MachineOptions,
    results: own.ResultOptions,
    json: opt.JsonOption = False,
    quiet: opt.QuietOption = False,
) -> None:
    """Compare plain and speculative decoding, in speed and answers.

    Every prompt is decoded both ways, in turns of a round each, with empty caches. The median speed-up over prompts
    comes with its 95 % interval. With --url, this is a load test instead: more and more clients ask a server, with
    drafts and without if the server lets them choose.

    Ends with exit code 5 if speculation changed any answer, and 1 if requests failed. Without a seed, answers at a
    temperature above 0 are random draws, which are not compared.
    """
    if command.invoked_subcommand is not None:
        url_opt.require_none(command)
        return
    url_opt.require_agreement(command, server.url, _WITH_URL, ("concurrency", "requests"))
    if server.url is not None:
        address = Address.parse(server.url, server.api_key)
        _bench_server(address, server.model_name, load, prompts.load(), max_tokens, json=json, quiet=quiet)
        return
    _require_start(command, start, drafts.history, repeats)
    if results.score and "max_tokens" not in url_opt.given(command):
        max_tokens = own.SCORED_TOKENS
    params = SamplingParams(max_tokens=max_tokens, temperature=temperature, seed=seed)
    config = engine_config(drafts, machine)

    from borrador.cli.bench_measure import Measurement

    measurement = Measurement(
        model=model,
        params=params,
        prompts=prompts.prompts or (OWN_PROBLEMS if results.score else DEFAULT_PROMPTS),
        per_task=prompts.per_task,
        repeats=repeats,
        start=start,
        save=results.save,
        report=results.report,
        score=results.score,
        json=json,
        quiet=quiet,
    )
    chosen = measurement.load_prompts()
    standard_output()
    if drafts.draft is None:
        config = follow_plan(model, config, quiet=quiet)
    if drafts.history is not None and not quiet:
        note = f"note: the history {drafts.history} may hold answers to these very prompts, and drafts come from it"
        print_wrapped(error_console(), note)
    config = config if start == "carried" else replace(config, profile=False)
    with open_llm(model, config, quiet=quiet) as llm:
        measurement.run(llm, config, chosen)


def _require_start(command: typer.Context, start: Start, history: str | None, repeats: int) -> None:
    """Refuse what would let drafters know the answers that they are measured with, or has no effect."""
    if start != "carried":
        for name in url_opt.given(command):
            if name in ("history", "profile"):
                raise UsageError(
                    f"--{name} has no effect with --start {start}, which says what drafters know", "Drop one of them."
                )
    if history is not None and repeats > 1:
        raise UsageError(
            f"--history lets the second of {repeats} repeats draft from the answer of the first", "Use --start warm."
        )


def _bench_server(
    address: Address,
    model_name: str | None,
    load: own.LoadOptions,
    prompts: Sequence[BenchPrompt],
    max_tokens: int,
    *,
    json: bool,
    quiet: bool,
) -> None:
    from borrador.bench.load import LoadPlan
    from borrador.cli.load import bench_server

    plan = LoadPlan(
        clients=tuple(map(int, load.concurrency.split(","))),
        requests=load.requests,
        max_tokens=SamplingParams(max_tokens=max_tokens).max_tokens,
    )
    standard_output()
    bench_server(address, model_name, plan, prompts, json=json, quiet=quiet)
