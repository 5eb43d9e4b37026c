"""The commands, and how their options are read."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Annotated, Any, cast

import typer

from borrador import __version__
from borrador.cli.bench import bench
from borrador.cli.chat import chat
from borrador.cli.doctor import doctor
from borrador.cli.history import history
from borrador.cli.models import list_models, pull, show
from borrador.cli.output import error_console, print_wrapped
from borrador.cli.plan import plan
from borrador.cli.rows import rows
from borrador.cli.run import run
from borrador.cli.serve import serve
from borrador.cli.variables import describe_unread
from borrador.cli.verify import verify
from borrador.errors import UsageError

# Typer carries its own copy of click in newer versions; the base of its public exceptions is the same in all.
_CommandLineError = cast("type[Exception]", typer.BadParameter.__base__)

_COMPLETE = "_BORRADOR_COMPLETE"  # set by a shell that asks what fits

app = typer.Typer(
    name="borrador",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "token_normalize_func": lambda token: token.replace("_", "-"),
        "max_content_width": 100,
    },
)
app.command("run")(run)
app.command("chat")(chat)
app.command("serve")(serve)
app.command("pull")(pull)
app.command("list")(list_models)
app.command("show")(show)
app.command("rows")(rows)
app.command("doctor")(doctor)
app.add_typer(bench, name="bench")
app.command("plan")(plan)
app.command("verify")(verify)
app.add_typer(history, name="history")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"borrador {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def describe(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001 (acts when it is read)
        bool, typer.Option("-V", "--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Speculative decoding: a fast drafter proposes, the model checks. Faster text, the same answer."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def run_app(words: Sequence[str]) -> int:
    """Run one command.

    Returns:
        The exit code.

    Raises:
        UsageError: the words are not a valid command line.
        KeyboardInterrupt: the user stopped it.
    """
    command = typer.main.get_command(app)
    try:
        if _COMPLETE in os.environ:
            _require_line_of_bash()
            command.main(list(words), "borrador", standalone_mode=False)
            return 0
        with command.make_context("borrador", list(words)) as context:
            _note_unread_variables(command)
            command.invoke(context)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 0
    except typer.Exit as stop:
        return stop.exit_code
    except typer.Abort:
        raise KeyboardInterrupt from None
    except _CommandLineError as error:
        raise _explain(error, words) from None
    return 0


def _require_line_of_bash() -> None:
    """Other shells may leave out what they have no words for."""
    is_given = "COMP_WORDS" in os.environ and os.environ.get("COMP_CWORD", "").isdecimal()
    if os.environ[_COMPLETE] == "complete_bash" and not is_given:
        raise UsageError(
            f"where {_COMPLETE} is set, COMP_WORDS and COMP_CWORD must say what is to be completed, they do not",
            f"Unset {_COMPLETE}; a shell sets it when it needs it.",
        )


def _note_unread_variables(command: Any) -> None:
    def of_options() -> set[str]:
        return {option.envvar for each in command.commands.values() for option in each.params if option.envvar}

    note = describe_unread(os.environ, of_options)
    if note:
        print_wrapped(error_console(), f"note: {note}")


def _explain(error: Exception, words: Sequence[str]) -> UsageError:
    sentence = str(error.format_message()).rstrip(".")  # type: ignore[attr-defined]
    context = getattr(error, "ctx", None)  # an option that lacks its value comes without
    path = _name_command(words) if context is None else context.command_path
    takes_prompt = path == "borrador run"
    quoting = "Put a prompt of several words in quotes. " if takes_prompt and "extra argument" in sentence else ""
    return UsageError(sentence[:1].lower() + sentence[1:], f"{quoting}See {path} --help.")


def _name_command(words: Sequence[str]) -> str:
    """The command that the first words name, as far as they do."""
    path: list[str] = []
    command: Any = typer.main.get_command(app)
    for word in words:
        command = getattr(command, "commands", {}).get(word)
        if command is None:
            break
        path.append(word)
    return " ".join(["borrador", *path])
