"""`borrador bench compare`: two saved benchmarks side by side."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from borrador.cli import options as opt
from borrador.cli.output import counted, make_table, print_json, print_table, standard_output

if TYPE_CHECKING:
    from borrador.bench.compare import Comparison
    from borrador.bench.summary import Ratio

_SHOWN = 8


def compare(
    a: Annotated[Path, typer.Argument(metavar="A.json", help="What `bench --save` wrote.")],
    b: Annotated[Path, typer.Argument(metavar="B.json", help="Another one.")],
    json: opt.JsonOption = False,
) -> None:
    """Compare two saved benchmarks: how they were made, and B's speed divided by A's.

    Speeds are compared prompt by prompt, and only prompts that both have; the median comes with its 95 % interval.
    """
    from borrador.bench.compare import compare as compare_records
    from borrador.bench.record import Record

    standard_output()
    found = compare_records(Record.read(a), Record.read(b))
    if found.differences:
        print_table(tabulate_differences(found))
        standard_output().write("\n")
    print_table(tabulate_speeds(found), *describe(found))
    if json:
        print_json(as_json(found))


def tabulate_differences(found: Comparison) -> Table:
    """A row for each fact that the two do not share."""
    table = make_table(left=("what differs",))
    for side in ("A", "B"):
        table.add_column(side, overflow="fold")
    for difference in found.differences:
        table.add_row(*difference)
    return table


def tabulate_speeds(found: Comparison) -> Table:
    """Decoding speeds of the shared prompts, and their change."""
    from borrador.cli.bench_tables import show_ratio

    table = make_table(left=("decoding",), right=("A", "B", "B / A, median, 95 %"))
    a, b, change = found.a, found.b, found.change
    table.add_row("plain tok/s", f"{a.plain_tok_s:.1f}", f"{b.plain_tok_s:.1f}", show_ratio(change.plain))
    table.add_row("spec tok/s", f"{a.spec_tok_s:.1f}", f"{b.spec_tok_s:.1f}", show_ratio(change.speculative))
    table.add_row("speed-up", f"{a.speedup:.2f}x", f"{b.speedup:.2f}x", show_ratio(change.speedup))
    return table


def describe(found: Comparison) -> Iterator[str]:
    """What the tables do not hold."""
    if not found.differences:
        yield "machine, models, settings and versions are the same"
    shared = counted(len(found.prompts), "prompt")
    if found.identical is None:
        yield f"{shared} in both; answers are draws without a seed: not compared"
    else:
        first = "" if found.different is None else f", the first that differs is {found.different}"
        yield f"{shared} in both, {found.identical} with identical answers{first}"
    for side, names in (("A", found.only_a), ("B", found.only_b)):
        if names:
            more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
            yield f"in {side} only: {', '.join(names[:_SHOWN])}{more}"


def as_json(found: Comparison) -> dict[str, object]:
    """The same for programs."""
    sides = {
        side: {
            "plain_tok_s": round(speeds.plain_tok_s, 3),
            "spec_tok_s": round(speeds.spec_tok_s, 3),
            "speedup": round(speeds.speedup, 4),
        }
        for side, speeds in (("a", found.a), ("b", found.b))
    }
    change = found.change
    return {
        **sides,
        "change": {
            "plain": _ratio(change.plain),
            "speculative": _ratio(change.speculative),
            "speedup": _ratio(change.speedup),
        },
        "differences": {name: {"a": a, "b": b} for name, a, b in found.differences},
        "prompts": len(found.prompts),
        "only_a": list(found.only_a),
        "only_b": list(found.only_b),
        "identical": found.identical,
        "different": found.different,
    }


def _ratio(ratio: Ratio | None) -> dict[str, object] | None:
    if ratio is None:
        return None
    interval = None if ratio.interval is None else [round(bound, 4) for bound in ratio.interval]
    return {"median": round(ratio.median, 4), "interval": interval}
