"""`borrador bench`: plain against speculative decoding on the same prompts, here or on a server under load."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import typer

from borrador.bench.prompts import DEFAULT_PROMPTS, OWN_PROBLEMS, BenchPrompt, Start, load_prompts
from borrador.cli import bench_options as own
from borrador.cli import options as opt
from borrador.cli import url_options as url_opt
from borrador.cli.bench_compare import compare
from borrador.cli.bench_report import report as write_report
from borrador.cli.output import error_console, print_wrapped, standard_output
from borrador.cli.run import follow_plan, open_llm
from borrador.errors import UsageError
from borrador.types import SamplingParams

_WITH_URL = {"prompts", "per_task", "max_tokens", "json", "quiet"}

bench = typer.Typer(rich_markup_mode=None)
bench.command("compare")(compare)
bench.command("report")(write_report)


@bench.callback(invoke_without_command=True)
def measure(
    command: typer.Context,
    model: opt.ModelOption = opt.MODEL,
    draft: opt.PlannedDraftOption = None,
    url: url_opt.UrlOption = None,
    api_key: url_opt.ApiKeyOption = None,
    model_name: url_opt.ModelNameOption = None,
    concurrency: own.ConcurrencyOption = own.CLIENTS,
    requests: own.RequestsOption = None,
    prompts: own.PromptsOption = None,
    per_task: own.PerTaskOption = None,
    repeats: own.RepeatsOption = 1,
    max_tokens: opt.MaxTokensOption = 128,
    temperature: opt.TemperatureOption = opt.SAMPLING.temperature,
    seed: opt.SeedOption = opt.SAMPLING.seed,
    start: own.StartOption = "carried",
    draft_tokens: opt.DraftTokensOption = opt.ENGINE.draft_tokens,
    draft_shortlist: opt.DraftShortlistOption = opt.ENGINE.draft_shortlist,
    history: opt.HistoryOption = opt.ENGINE.history,
    threads: opt.ThreadsOption = opt.ENGINE.threads,
    context: opt.ContextOption = opt.ENGINE.context,
    profile: opt.ProfileOption = opt.ENGINE.profile,
    save: own.SaveOption = None,
    report: own.ReportOption = None,
    score: own.ScoreOption = False,
    json: opt.JsonOption = False,
    quiet: opt.QuietOption = False,
) -> None:
    """Compare plain and speculative decoding, in speed and answers.

    Every prompt is decoded in both ways, one after the other, with nothing of it in any cache. The median speed-up of
    the prompts comes with its 95 % interval. With --url it is a load test: more and more clients ask a server, with
    drafts and without where it can be told.

    Ends with exit code 5 if speculation changed any answer, and 1 if requests failed. Without a seed a temperature
    above 0 makes answers draws, which are not compared.
    """
    if command.invoked_subcommand is not None:
        url_opt.require_none(command)
        return
    url_opt.require_agreement(command, url, _WITH_URL, ("concurrency", "requests"))
    if url is not None:
        _bench_server(
            url,
            api_key,
            model_name,
            tuple(map(int, concurrency.split(","))),
            requests,
            max_tokens,
            load_prompts(prompts or DEFAULT_PROMPTS, per_task),
            json=json,
            quiet=quiet,
        )
        return
    _require_start(command, start, history, repeats)
    if score and "max_tokens" not in url_opt.given(command):
        max_tokens = own.SCORED_TOKENS
    params = SamplingParams(max_tokens=max_tokens, temperature=temperature, seed=seed)
    config = opt.engine_config(draft, threads, context, draft_tokens, draft_shortlist, profile=profile, history=history)

    from borrador.cli.bench_measure import Measurement

    measurement = Measurement(
        model=model,
        params=params,
        prompts=prompts or (OWN_PROBLEMS if score else DEFAULT_PROMPTS),
        per_task=per_task,
        repeats=repeats,
        start=start,
        save=save,
        report=report,
        score=score,
        json=json,
        quiet=quiet,
    )
    chosen = measurement.load_prompts()
    standard_output()
    if draft is None:
        config = follow_plan(model, config, quiet=quiet)
    if history is not None and not quiet:
        note = f"note: the history {history} may hold answers to these very prompts, and drafts come from it"
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
    url: str,
    api_key: str | None,
    model_name: str | None,
    clients: tuple[int, ...],
    requests: int | None,
    max_tokens: int,
    prompts: Sequence[BenchPrompt],
    *,
    json: bool,
    quiet: bool,
) -> None:
    from borrador.bench.load import LoadPlan
    from borrador.cli.load import bench_server
    from borrador.remote.address import Address

    plan = LoadPlan(clients=clients, requests=requests, max_tokens=SamplingParams(max_tokens=max_tokens).max_tokens)
    standard_output()
    bench_server(Address.parse(url, api_key), model_name, plan, prompts, json=json, quiet=quiet)
