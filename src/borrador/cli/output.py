"""Where text goes: answers and tables to standard output, everything else to standard error."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from borrador.errors import BorradorError

_FILE_WIDTH = 120
_MIN_WIDTH = 60  # a narrower terminal breaks the lines of a table; squeezing it further would cut words off


def standard_output() -> TextIO:
    """Standard output.

    Raises:
        BorradorError: it is closed.
    """
    if sys.stdout is None:
        raise BorradorError("standard output is closed", "Redirect it to a file or to /dev/null.")
    return sys.stdout


class _PlainConsole(Console):
    def on_broken_pipe(self) -> None:
        """Rich would end the program with exit code 1 here."""
        raise BrokenPipeError


def make_console(stream: TextIO) -> Console:
    """A console with colour on a terminal only, none where NO_COLOR is set; text is printed as it is."""
    terminal = stream.isatty()
    return _PlainConsole(
        file=stream,
        force_terminal=terminal,
        color_system="auto" if terminal and not os.environ.get("NO_COLOR") else None,
        markup=False,
        highlight=False,
        emoji=False,
        soft_wrap=True,
        width=max(_MIN_WIDTH, shutil.get_terminal_size().columns) if terminal else _FILE_WIDTH,
    )


def error_console() -> Console:
    """For notices and statistics; they are dropped where standard error is closed."""
    return make_console(sys.stderr if sys.stderr is not None else io.StringIO())


def print_wrapped(console: Console, text: str | Text, style: str = "") -> None:
    """One sentence: on one line in a file, broken between words on a terminal."""
    console.print(text, style=style, soft_wrap=not console.is_terminal)


def make_table(left: Sequence[str] = (), right: Sequence[str] = (), last: str = "") -> Table:
    """An empty table: columns aligned to the left, columns of numbers, and perhaps one more of text."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for column in left:
        table.add_column(column, no_wrap=True)
    for column in right:
        table.add_column(column, justify="right", no_wrap=True)
    if last:
        table.add_column(last)
    return table


def print_table(table: Table, *notes: str) -> None:
    """A table on standard output, and below it sentences about it. No line ends in blanks."""
    console = make_console(standard_output())
    with console.capture() as captured:
        console.print(table)
    lines = [line.rstrip() for line in captured.get().splitlines()]
    console.file.write("\n".join([*lines, "", ""] if notes else [*lines, ""]))
    for note in notes:
        print_wrapped(console, note)


def counted(count: int, noun: str, plural: str = "") -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {plural or noun + 's'}"


def print_json(entry: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> None:
    """One object, or a list of them, on one line; not-a-number values are a bug, not JSON."""
    standard_output().write(json.dumps(entry, ensure_ascii=False, allow_nan=False) + "\n")


def share_a_screen() -> bool:
    """Standard output and standard error end up in the same place, so what they show must not run into each other."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        return os.path.sameopenfile(sys.stdout.fileno(), sys.stderr.fileno())
    return False


def encodes(stream: TextIO, text: str) -> bool:
    """Whether the stream can show this text."""
    try:
        text.encode(getattr(stream, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
