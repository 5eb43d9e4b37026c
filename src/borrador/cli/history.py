"""`borrador history`: what earlier answers are kept on this disk."""

from __future__ import annotations

from typing import Annotated

import typer

from borrador.cli import options as opt
from borrador.cli.completion import complete_history
from borrador.cli.output import counted, make_table, print_json, print_table, standard_output
from borrador.draft.history import HistoryFile, clear_history, history_folder, list_histories

history = typer.Typer(rich_markup_mode=None)


@history.callback(invoke_without_command=True)
def describe(context: typer.Context) -> None:
    """List or delete the answers that --history keeps."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@history.command("list")
def list_command(json: opt.JsonOption = False) -> None:
    """List the histories on this disk; each belongs to one vocabulary."""
    entries = list_histories()
    if json:
        print_json({"folder": str(history_folder()), "histories": [_as_json(entry) for entry in entries]})
        return
    if not entries:
        standard_output().write(f"there are no histories in {history_folder()}\n")
        return
    table = make_table(left=("name",), right=("answers", "tokens", "size"), last="file")
    for entry in entries:
        read = entry.answers is not None
        figures = (str(entry.answers), str(entry.tokens)) if read else ("damaged", "-")
        table.add_row(entry.namespace, *figures, f"{entry.size_bytes / 1e3:.1f} kB", entry.path.name)
    print_table(table, f"in {history_folder()}, as token ids")


@history.command("clear")
def clear(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME", autocompletion=complete_history, help="Delete this one only.", show_default=False
        ),
    ] = None,
) -> None:
    """Delete all histories, or only NAME."""
    count = clear_history(name)
    standard_output().write(f"{counted(count, 'file')} deleted\n")


def _as_json(entry: HistoryFile) -> dict[str, object]:
    return {
        "name": entry.namespace,
        "path": str(entry.path),
        "size_bytes": entry.size_bytes,
        "readable": entry.answers is not None,
        "answers": entry.answers,
        "tokens": entry.tokens,
    }
