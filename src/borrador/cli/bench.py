"""`borrador bench`: plain against speculative decoding on the same prompts, here or on a server under load."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from borrador.bench.prompts import DEFAULT_PROMPTS, BenchPrompt, load_prompts, require_room
from borrador.bench.report import Report, Speed, describe_divergence, summarise
from borrador.bench.runner import Decoder, Pair, run_pairs
from borrador.cli import options as opt
from borrador.cli import url_options as url_opt
from borrador.cli.output import error_console, make_table, print_json, print_table, standard_output
from borrador.cli.prompt import as_messages
from borrador.cli.run import follow_plan, open_llm
from borrador.errors import UsageError, VerificationError
from borrador.types import Completion, SamplingParams

if TYPE_CHECKING:
    from borrador.engine.llm import LLM


_WITH_URL = {"prompts", "per_task", "max_tokens", "json", "quiet"}
_CLIENTS = "1,2,4,8,16,32,64"


def _parse_numbers(text: str) -> str:
    """Whole numbers between commas, each of them once."""
    return ",".join(dict.fromkeys(str(opt.parse_integer(part)) for part in text.split(",")))


def bench(
    command: typer.Context,
    model: opt.ModelOption = opt.MODEL,
    draft: opt.PlannedDraftOption = None,
    url: url_opt.UrlOption = None,
    api_key: url_opt.ApiKeyOption = None,
    model_name: url_opt.ModelNameOption = None,
    concurrency: Annotated[
        str,
        typer.Option(
            "--concurrency",
            metavar="N,N,...",
            parser=_parse_numbers,
            help="With --url: clients at a time, one after another.",
        ),
    ] = _CLIENTS,
    requests: Annotated[
        int | None,
        typer.Option(
            "--requests",
            metavar="N",
            parser=opt.parse_count,
            help="With --url: requests of each level.  [default: twice the clients, at least 8]",
        ),
    ] = None,
    prompts: Annotated[
        Path | None,
        typer.Option("--prompts", metavar="FILE", help="JSON Lines with id, task, turns.  [default: a set of our own]"),
    ] = None,
    per_task: Annotated[
        int | None,
        typer.Option("--per-task", metavar="N", parser=opt.at_least(1), help="Only the first N of each task."),
    ] = None,
    max_tokens: opt.MaxTokensOption = 128,
    draft_tokens: opt.DraftTokensOption = opt.ENGINE.draft_tokens,
    draft_shortlist: opt.DraftShortlistOption = opt.ENGINE.draft_shortlist,
    history: opt.HistoryOption = opt.ENGINE.history,
    threads: opt.ThreadsOption = opt.ENGINE.threads,
    context: opt.ContextOption = opt.ENGINE.context,
    profile: opt.ProfileOption = opt.ENGINE.profile,
    json: opt.JsonOption = False,
    quiet: opt.QuietOption = False,
) -> None:
    """Compare plain and speculative decoding, in speed and answers.

    Every prompt is decoded greedily in both ways, one after the other. With --url it is a load test: more and more
    clients ask a server, with drafts and without where it can be told.

    Ends with exit code 5 if speculation changed any answer, and 1 if requests failed.
    """
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
    params = SamplingParams(max_tokens=max_tokens)
    if max_tokens < 2:
        raise UsageError(
            f"--max-tokens must be at least 2 to measure decoding, got {max_tokens}",
            "An answer's first token comes out of the prompt's own pass.",
        )
    config = opt.engine_config(draft, threads, context, draft_tokens, draft_shortlist, profile=profile, history=history)
    chosen = load_prompts(prompts or DEFAULT_PROMPTS, per_task)
    output = standard_output()
    if draft is None:
        config = follow_plan(model, config, quiet=quiet)
    with open_llm(model, config, quiet=quiet) as llm:
        require_room(chosen, lambda prompt: len(llm.tokenize(as_messages(prompt.text, None))), llm.context_length)
        pairs = tuple(_run(llm, chosen, params, quiet=quiet))
    report = summarise(pairs)
    print_table(tabulate(report), *describe_report(report))
    if json:
        print_json(report.as_json())
    output.flush()
    if (difference := describe_divergence(pairs)) is not None:
        raise VerificationError(difference, "This is a bug in borrador; please report it with the prompt.")


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


def _run(llm: LLM, prompts: Sequence[BenchPrompt], params: SamplingParams, *, quiet: bool) -> Iterator[Pair]:
    """The pairs, each announced when it is done."""
    console = error_console()
    decoders = (_decoder(llm, speculate=False), _decoder(llm, speculate=True))
    for number, pair in enumerate(run_pairs(*decoders, prompts, params), 1):
        if not quiet:
            plain, spec = pair.plain.stats.tokens_per_second, pair.speculative.stats.tokens_per_second
            verdict = "identical" if pair.identical else f"differs at token {pair.first_divergence}"
            line = f"{number}/{len(prompts)} {pair.prompt.id}: {plain:.1f} and {spec:.1f} tok/s, {verdict}"
            console.print(line, style="dim" if pair.identical else "red")
        yield pair
    if not quiet:
        console.print()


def _decoder(llm: LLM, *, speculate: bool) -> Decoder:
    def decode(prompt: str, params: SamplingParams) -> Completion:
        return llm.generate(as_messages(prompt, None), params, speculate=speculate)

    return decode


def tabulate(report: Report) -> Table:
    """A row per task and one for all; speeds in tokens per second."""
    table = make_table(left=("task",), right=("prompts", "plain tok/s", "spec tok/s", "speed-up"))
    for task, speed in report.per_task.items():
        table.add_row(task, *_cells(speed))
    table.add_section()
    table.add_row("all", *_cells(report.total))
    return table


def _cells(speed: Speed) -> tuple[str, ...]:
    if not speed.plain_tok_s or not speed.spec_tok_s:
        return str(speed.prompts), "-", "-", "-"
    return str(speed.prompts), f"{speed.plain_tok_s:.1f}", f"{speed.spec_tok_s:.1f}", f"{speed.speedup:.2f}x"


def describe_report(report: Report) -> tuple[str, str]:
    """What the table does not hold."""
    acceptance = "-" if report.acceptance is None else f"{report.acceptance:.0%}"
    return (
        f"{report.tokens_per_pass:.2f} tokens per pass, acceptance {acceptance}",
        f"prefill {report.prefill_tok_s:.0f} tok/s, {report.identical} of {report.prompts} answers identical",
    )
