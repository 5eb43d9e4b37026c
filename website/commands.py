"""The reference of the command line, written from the commands themselves."""

from __future__ import annotations

import html
from collections.abc import Iterator
from typing import Any

import typer

from borrador.cli.app import app

_INTRODUCTION = """# Commands

This page is generated from the program: it is what `borrador COMMAND --help` shows. Long options may also be written
with `_`. Where an environment variable is named, the command line overrides it.
"""

_ESCAPED = {ord(sign): f"\\{sign}" for sign in "|*["}


def render() -> str:
    """The page, as Markdown."""
    return "\n".join([_INTRODUCTION, *_describe(typer.main.get_command(app), "borrador", 1)])


def _describe(command: Any, name: str, level: int, parent: Any = None) -> Iterator[str]:
    context = command.context_class(command, info_name=name, parent=parent, **command.context_settings)
    path = context.command_path
    if level > 1:
        yield f"{'#' * level} `{path}`\n"
    yield f"```text\n{' '.join([path, *command.collect_usage_pieces(context)])}\n```\n"
    yield f"{html.escape(command.help or '', quote=False)}\n"
    yield from _describe_parameters(command, context)
    for member_name, member in getattr(command, "commands", {}).items():
        yield from _describe(member, member_name, level + 1, context)


def _describe_parameters(command: Any, context: Any) -> Iterator[str]:
    records = [record for parameter in command.get_params(context) if (record := parameter.get_help_record(context))]
    yield "| option | meaning |\n|---|---|"
    for names, meaning in records:
        yield f"| {code_cell(names)} | {text_cell(meaning)} |"
    yield ""


def code_cell(text: str) -> str:
    """For a cell of a table, as code. A bar ends the cell for some readers of Markdown, and others show its escape."""
    return f"<code>{html.escape(text, quote=False).replace('|', '&#124;')}</code>" if "|" in text else f"`{text}`"


def text_cell(text: str) -> str:
    """For a cell of a table: plain text, of which only `code` keeps its meaning."""
    return html.escape(" ".join(text.split()), quote=False).translate(_ESCAPED)
