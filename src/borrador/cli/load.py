"""`borrador bench --url`: how a server bears more and more clients."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.table import Table

from borrador.bench.load import Level, LoadPlan, run_load
from borrador.bench.load_report import LevelReport, LoadReport, Percentiles, SeriesReport
from borrador.bench.prompts import BenchPrompt
from borrador.cli.bench_tables import show_interval
from borrador.cli.output import (
    counted,
    error_console,
    make_table,
    print_json,
    print_table,
    print_wrapped,
    standard_output,
)
from borrador.errors import BorradorError, VerificationError
from borrador.remote.address import Address
from borrador.remote.connection import open_client
from borrador.remote.discovery import SpeculativeField, find_model, probe_speculation

_WAYS = {True: "on", False: "off", None: "-"}


def bench_server(
    address: Address, model_name: str | None, plan: LoadPlan, prompts: Sequence[BenchPrompt], *, json: bool, quiet: bool
) -> None:
    """Run the test, print its report.

    Raises:
        VerificationError: drafts changed an answer.
        BorradorError: the server cannot be used, or requests failed.
    """
    with open_client(address) as client:
        model = find_model(client, address, model_name)
        field = probe_speculation(client, address, model)
    both = field == "understood"
    notice = _notice(quiet=quiet)
    report = LoadReport.of(run_load(address, model, plan, prompts, both=both, notice=notice))
    print_table(tabulate(report))
    standard_output().write("\n")
    print_table(tabulate_times(report), *describe(report, address, model, field))
    if json:
        setup = {"url": address.base, "model": model, "max_tokens": plan.max_tokens, "speculative_field": field}
        print_json({**setup, **report.as_json()})
    standard_output().flush()
    _require_good(report)


def tabulate(report: LoadReport) -> Table:
    """Requests and throughput: a row for each level and way of asking."""
    both = _compares(report)
    table = make_table(
        right=(*_way_columns(report), "ok", "429", "failed", "tok/s", *(("on/off, 95 %", "same") if both else ()))
    )
    table.collapse_padding = True  # fits 80 columns
    for level in report.levels:
        for series in level.series:
            counts = (str(count) for count in (series.ok, series.rejected, series.failed))
            compared = _compare(level, series) if both else ()
            table.add_row(*_way(report, level, series), *counts, f"{series.tokens_per_second:.1f}", *compared)
    return table


def tabulate_times(report: LoadReport) -> Table:
    """How long clients waited: a row for each level and way of asking."""
    table = make_table(right=(*_way_columns(report), "TTFT ms 50/95/99", "TPOT ms 50/95", "e2e s 50/95/99"))
    table.collapse_padding = True
    for level in report.levels:
        for series in level.series:
            table.add_row(
                *_way(report, level, series),
                _figures(series.first_token, lambda seconds: f"{seconds * 1e3:.0f}"),
                _figures(series.per_token, lambda seconds: f"{seconds * 1e3:.1f}", count=2),
                _figures(series.whole, lambda seconds: f"{seconds:.2f}"),
            )
    return table


def _compares(report: LoadReport) -> bool:
    return any(len(level.series) > 1 for level in report.levels)


def _way_columns(report: LoadReport) -> tuple[str, ...]:
    return ("clients", "drafts") if _compares(report) else ("clients",)


def _way(report: LoadReport, level: LevelReport, series: SeriesReport) -> tuple[str, ...]:
    return (str(level.clients), *((_WAYS[series.speculate],) if _compares(report) else ()))


def describe(report: LoadReport, address: Address, model: str, field: SpeculativeField) -> list[str]:
    """What the table does not hold."""
    sentences = [f"{model} at {address.base}; TTFT is until the first text, TPOT for each further token"]
    if field != "understood":
        sentences.append(f"one series: the server cannot be told how to draft, its field speculative is {field}")
    if report.counts == "events":
        sentences.append("the server did not count the tokens of every answer: events with text are counted instead")
    if report.first_failure is not None:
        sentences.append(f"{report.failed} of {report.requests} requests failed")
    return sentences


def _compare(level: LevelReport, series: SeriesReport) -> tuple[str, str]:
    """Only beside the row with drafts."""
    if not series.speculate:
        return "", ""
    ratio = "-" if level.ratio is None else f"{level.ratio:.2f}x"
    interval = "" if level.interval is None else f" {show_interval(level.interval)}"
    return ratio + interval, f"{level.identical}/{level.compared}"


def _figures(seconds: Percentiles | None, show: Callable[[float], str], count: int = 3) -> str:
    if seconds is None:
        return "-"
    return "/".join(map(show, (seconds.p50, seconds.p95, seconds.p99)[:count]))


def _notice(*, quiet: bool) -> Callable[[Level], None]:
    console = error_console()

    def notice(level: Level) -> None:
        report = LevelReport.of(level)
        speeds = " and ".join(f"{series.tokens_per_second:.1f}" for series in report.series)
        ways = " with drafts and without" if len(report.series) > 1 else ""
        print_wrapped(console, f"{counted(level.clients, 'client')}: {speeds} tok/s{ways}", style="dim")

    return (lambda _: None) if quiet else notice


def _require_good(report: LoadReport) -> None:
    if report.difference is not None:
        raise VerificationError(
            f"drafts must not change an answer, but {report.difference}",
            "Servers whose arithmetic depends on what else is in a pass do that; a borrador server must not.",
        )
    if report.first_failure is not None:
        raise BorradorError(
            f"{report.failed} of {report.requests} requests failed, the first one with: {report.first_failure}",
            "Look at the server's log.",
        )
