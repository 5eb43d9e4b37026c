"""Options of commands that can use a server instead of the engine."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated

import typer

from borrador.errors import UsageError

UrlOption = Annotated[
    str | None,
    typer.Option("--url", metavar="URL", help="Use the OpenAI-compatible server at URL instead of a model here."),
]
ApiKeyOption = Annotated[
    str | None,
    typer.Option(
        "--api-key", metavar="KEY", envvar="BORRADOR_API_KEY", show_envvar=True, help="With --url: the server's key."
    ),
]
ModelNameOption = Annotated[
    str | None,
    typer.Option(
        "--model-name", metavar="NAME", help="With --url: the server's name for the model.  [default: its first]"
    ),
]
NEEDS_URL = ("api_key", "model_name")


@dataclass(frozen=True, kw_only=True)
class UrlOptions:
    """A server, and what is said to it."""

    url: UrlOption = None
    api_key: ApiKeyOption = None
    model_name: ModelNameOption = None


def require_agreement(
    command: typer.Context, url: str | None, with_url: Collection[str], only_with_url: Collection[str] = ()
) -> None:
    """Refuse options of the command line that would have no effect beside the others.

    Args:
        command: which was called.
        url: of the server; None where the engine is used.
        with_url: parameters that a server can use as well as the engine.
        only_with_url: parameters that only a server can use, besides the options here.

    Raises:
        UsageError: one of the engine is given with a URL, or one of a server without.
    """
    servers = {"url", *NEEDS_URL, *only_with_url}
    for name in given(command):
        if url is None and name in servers:
            raise UsageError(f"{_option(name)} needs --url, and it is not given", "Drop it, or name a server.")
        if url is not None and name not in servers and name not in with_url:
            raise UsageError(
                f"--url uses a server as it is, and {_option(name)} is for a model here", "Drop one of the two."
            )


def require_none(command: typer.Context) -> None:
    """Refuse options before a command of a group. Raises UsageError."""
    for name in given(command):
        raise UsageError(f"{_option(name)} has no effect before {command.invoked_subcommand}", "Drop one of them.")


def given(command: typer.Context) -> list[str]:
    """The parameters that the command line sets."""
    sources = {name: command.get_parameter_source(name) for name in command.params}
    return [name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"]


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"
