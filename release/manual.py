"""Manual pages of the program and its commands, written from the commands themselves.

python -m release.manual FOLDER
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import typer

from borrador import __version__
from borrador.cli.app import app
from borrador.cli.variables import GENERAL

EXIT_CODES = (
    (0, "Everything went well."),
    (1, "Something failed while running."),
    (2, "The command line is wrong."),
    (3, "A model is missing, damaged or not supported."),
    (4, "Memory is too short."),
    (5, "Speculative and plain decoding differ."),
    (130, "Interrupted."),
)
ENVIRONMENT = (*GENERAL.items(), ("NO_COLOR", "If set, nothing is coloured."))
_PROGRAM = "borrador"


def write_pages(folder: Path) -> list[Path]:
    """Write one page for the program and one for each command.

    Returns:
        The files, the program's first.
    """
    folder.mkdir(parents=True, exist_ok=True)
    root = typer.main.get_command(app)
    pages = {"-".join(path): page(root, path) for path in _paths(root, (_PROGRAM,))}
    files = [folder / f"{name}.1" for name in pages]
    for file, text in zip(files, pages.values(), strict=True):
        file.write_text(text, encoding="utf-8")
    return files


def page(root: Any, path: Sequence[str]) -> str:
    """The page of the command with this path, such as `("borrador", "history", "list")`, in roff."""
    context = root.make_context(_PROGRAM, [], resilient_parsing=True)
    for name in path[1:]:
        context = context.command.commands[name].make_context(name, [], parent=context, resilient_parsing=True)
    command = context.command
    lines = [
        f'.TH {_quoted("-".join(path).upper())} 1 "" {_quoted(f"borrador {__version__}")} "Manual of borrador"',
        ".SH NAME",
        f"{escape('-'.join(path))} \\- {escape(_summary(command))}",
        ".SH SYNOPSIS",
        f".B {escape(' '.join(path))}",
        escape(" ".join(command.collect_usage_pieces(context))),
        ".SH DESCRIPTION",
        *_paragraphs(command.help or ""),
        *_section("ARGUMENTS", _entries(command, context, "argument")),
        *_section("OPTIONS", _entries(command, context, "option")),
        *_section("COMMANDS", _commands(command, path)),
        *_section("ENVIRONMENT", ((f"\\fB{escape(name)}\\fR", text) for name, text in _environment(command, path))),
        *_section("EXIT STATUS", ((f"\\fB{code}\\fR", text) for code, text in EXIT_CODES)),
        ".SH SEE ALSO",
        _see_also(root, path),
    ]
    return "\n".join(lines) + "\n"


def escape(text: str) -> str:
    """Text that roff prints as it is; hyphens stay hyphens that can be copied."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")
    text = "".join(letter if letter.isascii() else f"\\[u{ord(letter):04X}]" for letter in text)
    return f"\\&{text}" if text.startswith(".") else text


def _paths(command: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    yield path
    for name, child in getattr(command, "commands", {}).items():
        yield from _paths(child, (*path, name))


def _summary(command: Any) -> str:
    """The first sentence of the help."""
    return " ".join(re.split(r"\.(?:\s|$)", command.help or "", maxsplit=1)[0].split())


def _paragraphs(text: str) -> Iterator[str]:
    for number, paragraph in enumerate(re.split(r"\n\s*\n", text.strip())):
        if number:
            yield ".PP"
        yield escape(" ".join(paragraph.split()))


def _entries(command: Any, context: Any, kind: str) -> Iterator[tuple[str, str]]:
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context) if parameter.param_type_name == kind else None
        if record is not None:
            head, text = record
            yield _emphasised(head if kind == "option" else head.split()[0]), text


def _emphasised(head: str) -> str:
    """Options in bold, what they take in italics."""
    pieces = re.split(r"(,? )", head)
    return "".join(piece if piece.startswith((",", " ")) else _font(piece) for piece in pieces)


def _font(word: str) -> str:
    return f"\\f{'B' if word.startswith('-') else 'I'}{escape(word)}\\fR"


def _commands(command: Any, path: Sequence[str]) -> Iterator[tuple[str, str]]:
    for name, child in getattr(command, "commands", {}).items():
        yield f"\\fB{escape('-'.join((*path, name)))}\\fR(1)", f"{_summary(child)}."


def _environment(command: Any, path: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Of the program what all commands read, of a command the variables of its options."""
    if len(path) == 1:
        yield from ENVIRONMENT
    for parameter in command.params:
        if parameter.envvar:
            yield parameter.envvar, f"Stands in for {parameter.opts[-1]}."


def _section(title: str, entries: Iterator[tuple[str, str]]) -> list[str]:
    """A titled list; nothing where it is empty."""
    lines = [line for head, text in entries for line in (".TP", head, escape(" ".join(text.split())) or "\\&")]
    return [f".SH {title}", *lines] if lines else []


def _see_also(root: Any, path: Sequence[str]) -> str:
    others = [_PROGRAM, *(f"{_PROGRAM}-{name}" for name in root.commands)]
    own = "-".join(path)
    return ",\n".join(f"\\fB{escape(name)}\\fR(1)" for name in others if name != own)


def _quoted(text: str) -> str:
    return f'"{escape(text)}"'


if __name__ == "__main__":
    for written in write_pages(Path(sys.argv[1])):
        print(written)
