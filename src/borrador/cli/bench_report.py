"""`borrador bench report`: a saved benchmark as a page of HTML."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from borrador.cli import options as opt
from borrador.cli.output import error_console, print_wrapped

if TYPE_CHECKING:
    from borrador.bench.record import Record


def report(
    record: Annotated[Path, typer.Argument(metavar="RECORD.json", help="What `bench --save` wrote.")],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE.html", help="[default: the record's name with .html]"),
    ] = None,
    quiet: opt.QuietOption = False,
) -> None:
    """Write a saved benchmark as one HTML page with charts that needs no network and no other file."""
    from borrador.bench.files import require_writable
    from borrador.bench.record import Record

    found = Record.read(record)
    path = output or record.with_suffix(".html")
    require_writable(path, "--output", ".html")
    write_page(found, path, quiet=quiet)


def write_page(record: Record, path: Path, *, quiet: bool) -> None:
    """Write the page whole or not at all, and say so.

    Raises:
        BorradorError: the system refuses.
    """
    from borrador.bench.files import write_whole
    from borrador.bench.page.render import render_page

    write_whole(path, render_page(record))
    if not quiet:
        print_wrapped(error_console(), f"report in {path}", style="dim")
