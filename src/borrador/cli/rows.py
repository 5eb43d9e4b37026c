"""`borrador rows`: what a target pass costs by its number of rows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from borrador.bench.row_cost import MIN_REPEATS, ROW_COUNTS, RowCosts
from borrador.bench.row_plot import draw_rows, require_plot_file
from borrador.cli import options as opt
from borrador.cli.models import find_model
from borrador.cli.output import make_table, print_json, print_table, standard_output
from borrador.config import MAX_CONTEXT, EngineConfig

_CONTEXT = opt.within(0, MAX_CONTEXT - max(ROW_COUNTS))


def rows(
    model: opt.ModelOption = opt.MODEL,
    repeats: Annotated[
        int,
        typer.Option("--repeats", metavar="N", parser=opt.at_least(MIN_REPEATS), help="Passes of each size."),
    ] = 25,
    context_tokens: Annotated[
        int, typer.Option("--context-tokens", metavar="N", parser=_CONTEXT, help="Tokens already in the cache.")
    ] = 64,
    threads: opt.ThreadsOption = opt.ENGINE.threads,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", metavar="FILE.svg", help="Also draw T(m) and its limits (extra borrador[plot])."),
    ] = None,
    json: opt.JsonOption = False,
    quiet: opt.QuietOption = False,
) -> None:
    """Measure what a pass costs by its number of rows, and what the machine allows.

    T(m) is the median time of a pass over m rows; sizes are interleaved. The limit is the larger of two times: reading
    the weights once at the bandwidth that these threads reach, and computing the products of m rows at the peak of
    their integer units. Both are measured before and after the passes.
    """
    EngineConfig(threads=threads)
    if plot is not None:
        require_plot_file(plot)
    standard_output()
    path = find_model(model, quiet=quiet)
    costs = _measure(path, repeats, context_tokens, threads)
    print_table(tabulate(costs), describe_limits(costs))
    if plot is not None:
        draw_rows(costs, path.name, plot)
    if json:
        print_json(costs.as_json())


def _measure(path: Path, repeats: int, context_tokens: int, threads: int | None) -> RowCosts:
    from borrador.bench.row_cost import measure_model
    from borrador.models.native import NativeModel

    model = NativeModel.load(path, threads=threads)
    try:
        return measure_model(model, repeats, context_tokens)
    finally:
        model.close()


def tabulate(costs: RowCosts) -> Table:
    """A row per pass size."""
    table = make_table(right=("rows", "T(m) ms", "T(m)/T(1)", "ms a row", "limit ms", "of limit", "bandwidth"))
    for count, seconds in costs.seconds.items():
        milliseconds = seconds * 1e3
        table.add_row(
            str(count),
            f"{milliseconds:.2f}",
            f"{costs.ratio(count):.2f}",
            f"{milliseconds / count:.2f}",
            f"{costs.limit(count) * 1e3:.2f}",
            f"{costs.limit_share(count):.0%}",
            f"{costs.bandwidth_share(count):.0%}",
        )
    return table


def describe_limits(costs: RowCosts) -> str:
    """What the limits in the table are made of."""
    return (
        f"{costs.weights_bytes / 1e6:.0f} MB of weights a pass at {costs.read_bandwidth / 1e9:.1f} GB/s take "
        f"{costs.memory_limit * 1e3:.2f} ms; {costs.row_macs / 1e6:.0f} M products a row at "
        f"{costs.integer_peak / 1e9:.0f} G/s take {costs.integer_limit(1) * 1e3:.2f} ms"
    )
