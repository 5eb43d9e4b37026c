"""`borrador pull`, `list` and `show`: models by name, on disk, and what is in them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from borrador.cli import options as opt
from borrador.cli.completion import complete_catalogue, complete_model
from borrador.cli.model_card import describe_file, readable
from borrador.cli.output import error_console, make_console, make_table, print_json, print_table, standard_output
from borrador.cli.progress import FetchProgress
from borrador.config import EngineConfig
from borrador.draft.plugin import find_plugins
from borrador.draft.registry import NAMES, expand_specs
from borrador.errors import ModelError
from borrador.models import download
from borrador.models.catalogue import CATALOGUE, installed

ModelArgument = Annotated[
    str,
    typer.Argument(
        metavar="MODEL", autocompletion=complete_model, help="Catalogue name, path, or hf:OWNER/REPO/FILE.gguf."
    ),
]
NameArgument = Annotated[
    str,
    typer.Argument(
        metavar="NAME", autocompletion=complete_catalogue, help="Catalogue name or hf:OWNER/REPO/FILE.gguf."
    ),
]


def find_model(name: str, *, quiet: bool, drafters: Iterable[str] = ()) -> Path:
    """The file of a model, fetched first where it is missing.

    Args:
        name: as `models.download.resolve` takes it.
        quiet: show no progress.
        drafters: for a draft model, what else could have been named.

    Raises:
        ModelError: as `models.download.resolve`.
    """
    with FetchProgress(error_console(), quiet=quiet) as progress:
        return download.resolve(name, progress=progress, drafters=drafters)


def require_on_disk(name: str) -> None:
    """Raise ModelError for a model of the catalogue that would have to be fetched."""
    if name in CATALOGUE and not CATALOGUE[name].path.exists():
        raise ModelError(f"{name} is not on this disk", f"Fetch it with: borrador pull {name}")


def find_models(model: str, config: EngineConfig, *, quiet: bool) -> None:
    """Fetch what is missing of a target and its draft models. Errors as for `find_model`."""
    find_model(model, quiet=quiet)
    drafters = (*NAMES, *find_plugins())
    for name in expand_specs(config.draft):
        if name not in drafters:
            find_model(name, quiet=quiet, drafters=drafters)


def pull(name: NameArgument, quiet: opt.QuietOption = False) -> None:
    """Fetch a model and check it."""
    with FetchProgress(error_console(), quiet=quiet) as progress:
        path = download.pull(name, progress=progress)
    standard_output().write(f"{path}\n")


def list_models(json: opt.JsonOption = False) -> None:
    """List the catalogue and what is on disk."""
    entries = _catalogue_entries()
    if json:
        print_json({"models": entries})
        return
    table = make_table(left=("name", "on disk"), right=("size",), last="model")
    for entry in entries:
        state = "yes" if entry["on_disk"] else "damaged" if entry["path"] else "no"
        table.add_row(entry["name"], state, f"{entry['size_bytes'] / 1e6:.0f} MB", entry["description"])
    print_table(table)


def show(model: ModelArgument, json: opt.JsonOption = False) -> None:
    """Show what is in a model file."""
    require_on_disk(model)
    card = describe_file(find_model(model, quiet=False))
    if json:
        print_json(card)
        return
    console = make_console(standard_output())
    for label, value in readable(card):
        console.print(Text.assemble((f"{label:<15}", "bold"), value))


def _catalogue_entries() -> list[dict[str, Any]]:
    found = {model.entry.name: model for model in installed()}
    return [
        {
            "name": entry.name,
            "size_bytes": entry.size_bytes,
            "on_disk": name in found and found[name].complete,
            "path": str(found[name].path) if name in found else None,
            "description": entry.description,
        }
        for name, entry in CATALOGUE.items()
    ]
