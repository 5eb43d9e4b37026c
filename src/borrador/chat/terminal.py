"""The line editor of a chat on a terminal."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from borrador.chat.commands import COMMANDS
from borrador.chat.lines import is_open
from borrador.chat.settings import NAMES
from borrador.draft.history import history_folder

if TYPE_CHECKING:
    from prompt_toolkit.completion import Completer
    from prompt_toolkit.history import History
    from prompt_toolkit.key_binding import KeyBindings

PROMPT = ">>> "
CONTINUATION = "... "
_MAX_BYTES = 1 << 20
_ENTRY = b"\n# "


def open_editor(terminal: TextIO, *, keep: bool, warn: Callable[[str], None]) -> Callable[[], str]:
    """An editor with a history, with completion of commands, and with several lines where quotes are open.

    Args:
        terminal: shows it.
        keep: keep what was typed for the next chat.
        warn: told where that is not possible.
    """
    from prompt_toolkit import PromptSession
    from prompt_toolkit.filters import Condition
    from prompt_toolkit.output import create_output

    history = open_history(input_history(), warn) if keep else None
    session: PromptSession[str] = PromptSession(
        PROMPT,
        history=history,
        multiline=Condition(lambda: is_open(session.default_buffer.text)),
        prompt_continuation=CONTINUATION,
        completer=_completer(),
        complete_while_typing=False,
        key_bindings=_bindings(),
        output=create_output(stdout=terminal),
    )
    return session.prompt


def input_history() -> Path:
    """Where what was typed is kept."""
    return history_folder() / "chat-input"


def open_history(path: Path, warn: Callable[[str], None]) -> History:
    """A history in a file that only its owner can read, or in memory where there can be no file."""
    from prompt_toolkit.history import FileHistory, InMemoryHistory

    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        path.chmod(0o600)
        _shorten(path)
    except OSError as error:
        warn(f"what is typed is not kept: {path}: {error.strerror or error}")
        return InMemoryHistory()

    class Forgiving(FileHistory):
        """A disk that fills up must not end a chat."""

        def store_string(self, string: str) -> None:
            with contextlib.suppress(OSError):
                super().store_string(string)

    return Forgiving(str(path))


def _shorten(path: Path) -> None:
    """Keep the newer half of a history that has grown large."""
    if path.stat().st_size <= _MAX_BYTES:
        return
    content = path.read_bytes()[-_MAX_BYTES // 2 :]
    path.write_bytes(content[max(content.find(_ENTRY), 0) :])


def _bindings() -> KeyBindings:
    """Alt-Enter (or Escape, then Enter) adds a line anywhere."""
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

    bindings = KeyBindings()

    @bindings.add("escape", "enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return bindings


def _completer() -> Completer:
    from prompt_toolkit.completion import NestedCompleter, PathCompleter

    below: dict[str, object] = {
        "/set": set(NAMES),
        "/draft": {"on", "off", "auto"},
        "/color": {"on", "off"},
        "/save": PathCompleter(expanduser=True),
        "/load": PathCompleter(expanduser=True),
    }
    return NestedCompleter.from_nested_dict({command.name: below.get(command.name) for command in COMMANDS})
