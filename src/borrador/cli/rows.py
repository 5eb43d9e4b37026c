"""`borrador rows`: what a target pass costs by its number of rows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from borrador.bench.row_cost import MIN_REPEATS, ROW_COUNTS, RowCosts, fill_context, measure_rows
from borrador.cli import options as opt
from borrador.cli.models import find_model
from borrador.cli.output import make_table, print_json, print_table, standard_output

_BANDWIDTH_BYTES = 512 * 2**20


def rows(
    model: opt.ModelOption = opt.MODEL,
    repeats: Annotated[
        int,
        typer.Option("--repeats", metavar="N", parser=opt.at_least(MIN_REPEATS), help="Passes of each size."),
    ] = 25,
    context_tokens: Annotated[
        int, typer.Option("--context-tokens", metavar="N", parser=opt.at_least(0), help="Tokens already there.")
    ] = 64,
    threads: opt.ThreadsOption = opt.ENGINE.threads,
    json: opt.JsonOption = False,
    quiet: opt.QuietOption = False,
) -> None:
    """Measure what a pass costs by its rows.

    T(m) is the median time of a pass over m rows; sizes are interleaved. The share of memory bandwidth compares the
    bytes of weights read in that time with what the same threads read from memory at best.
    """
    opt.engine_config(None, threads, context_tokens + max(ROW_COUNTS), None)
    standard_output()
    costs = _measure(find_model(model, quiet=quiet), repeats, context_tokens, threads)
    print_table(tabulate(costs), describe_bandwidth(costs))
    if json:
        print_json(costs.as_json())


def _measure(path: Path, repeats: int, context_tokens: int, threads: int | None) -> RowCosts:
    from borrador import _native
    from borrador.models.native import NativeModel

    model = NativeModel.load(path, threads=threads)
    try:
        target = model.open(context_tokens + max(ROW_COUNTS))
        tokens = [number * 7919 % target.vocabulary_size for number in range(context_tokens + max(ROW_COUNTS))]
        fill_context(target, tokens[:context_tokens])
        before = _native.read_bandwidth(model.threads, _BANDWIDTH_BYTES)
        seconds = measure_rows(target, tokens[context_tokens:], repeats)
        after = _native.read_bandwidth(model.threads, _BANDWIDTH_BYTES)
        return RowCosts(seconds, model.weights_bytes, max(before, after))
    finally:
        model.close()


def tabulate(costs: RowCosts) -> Table:
    """A row per pass size."""
    table = make_table(right=("rows", "T(m) ms", "T(m)/T(1)", "ms a row", "bandwidth"))
    for count, seconds in costs.seconds.items():
        milliseconds = seconds * 1e3
        table.add_row(
            str(count),
            f"{milliseconds:.2f}",
            f"{costs.ratio(count):.2f}",
            f"{milliseconds / count:.2f}",
            f"{costs.bandwidth_share(count):.0%}",
        )
    return table


def describe_bandwidth(costs: RowCosts) -> str:
    """What the last column of the table is a share of."""
    return (
        f"{costs.weights_bytes / 1e6:.0f} MB of weights a pass; the memory gives "
        f"{costs.read_bandwidth / 1e9:.1f} GB/s, {costs.weights_bytes / costs.read_bandwidth * 1e3:.2f} ms for them"
    )
