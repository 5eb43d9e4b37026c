"""A chat as a file: JSON with its messages and settings, replaced as a whole, for its owner's eyes only."""

from __future__ import annotations

import json
import os
import stat
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from borrador.chat.conversation import Conversation, Exchange
from borrador.chat.settings import Settings
from borrador.errors import BorradorError, UsageError
from borrador.values import is_unicode

_FORMAT = "borrador-chat"
_VERSION = 1
_MAX_BYTES = 64 * 2**20


@dataclass(frozen=True, slots=True)
class SavedChat:
    """What a file holds."""

    conversation: Conversation
    settings: Settings


def save(name: str, chat: SavedChat, model: str) -> Path:
    """Write a chat; a file of that name is replaced if it is a saved chat too.

    Args:
        name: of the file; `~` is the home folder.
        chat: the chat.
        model: that wrote the answers, for people who read the file.

    Returns:
        The file's path.

    Raises:
        UsageError: the name is taken by something else.
        BorradorError: the system does not take it.
    """
    path = _path(name)
    if os.path.lexists(path):  # unlike Path.exists it takes names of any length
        _require_ours(path)
    entry = {"format": _FORMAT, "version": _VERSION, "model": model, "settings": chat.settings.as_json()}
    text = json.dumps({**entry, "messages": _messages(chat.conversation)}, ensure_ascii=False, indent=1)
    try:
        _replace(path, text.encode("utf-8", "replace") + b"\n")
    except OSError as error:
        raise BorradorError(f"{path} cannot be written: {error.strerror or error}", "Choose another file.") from None
    return path


def load(name: str, settings: Settings) -> SavedChat:
    """Read a chat.

    Args:
        name: of the file; `~` is the home folder.
        settings: where the file holds none.

    Raises:
        UsageError: it cannot be read, or is not a saved chat.
    """
    path = _path(name)
    entry = _read(path)
    try:
        return SavedChat(_conversation(entry["messages"]), settings.from_json(entry["settings"]))
    except (KeyError, TypeError, AttributeError, ValueError):
        raise _no_chat(path, "its messages are not a conversation") from None
    except UsageError as error:
        raise _no_chat(path, str(error)) from None


def _path(name: str) -> Path:
    """Where a name points to in the end: a link stays a link."""
    try:
        return Path(name).expanduser().resolve()
    except (RuntimeError, OSError, ValueError):
        raise UsageError(f"{name!r:.80} is not a file name", "Choose another one.") from None


def _messages(conversation: Conversation) -> list[dict[str, Any]]:
    system = [] if conversation.system is None else [{"role": "system", "content": conversation.system}]
    turns: list[dict[str, Any]] = []
    for exchange in conversation.exchanges:
        turns.append({"role": "user", "content": exchange.question})
        answer: dict[str, Any] = {"role": "assistant", "content": exchange.answer}
        turns.append(answer | ({"stopped": True} if exchange.stopped else {}))
    return [*system, *turns]


def _conversation(messages: Any) -> Conversation:
    """Raises ValueError, KeyError, TypeError or AttributeError for what is not one."""
    turns = [(message["role"], message["content"], message.get("stopped", False)) for message in messages]
    if not all(isinstance(text, str) and is_unicode(text) and isinstance(stopped, bool) for _, text, stopped in turns):
        raise ValueError("contents must be text")
    system = turns.pop(0)[1] if turns and turns[0][0] == "system" else None
    if [role for role, _, _ in turns] != ["user", "assistant"] * (len(turns) // 2):
        raise ValueError("questions and answers must alternate")
    pairs = zip(turns[::2], turns[1::2], strict=True)
    return Conversation(system, [Exchange(question[1], answer[1], answer[2]) for question, answer in pairs])


def _read(path: Path) -> Mapping[str, Any]:
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # a pipe would be waited for
            raise _no_chat(path, "it is no file")
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{path!s:.120} cannot be read: {error.strerror or error}", "Check the name.") from None
    if len(content) > _MAX_BYTES:
        raise _no_chat(path, f"it holds more than {_MAX_BYTES} bytes")
    try:
        entry = json.loads(content)
    except (ValueError, RecursionError):
        raise _no_chat(path, "it is not JSON") from None
    if not isinstance(entry, dict) or entry.get("format") != _FORMAT:
        raise _no_chat(path, "it is of another program")
    if entry.get("version") != _VERSION:
        raise _no_chat(path, f"its version is {entry.get('version')!r:.20}, not {_VERSION}")
    return entry


def _no_chat(path: Path, reason: str) -> UsageError:
    return UsageError(f"{path!s:.120} is not a saved chat: {reason:.200}", "Give a file that /save wrote.")


def _require_ours(path: Path) -> None:
    try:
        _read(path)
    except UsageError:
        raise UsageError(f"{path!s:.120} exists and is not a saved chat", "Choose another file.") from None


def _replace(path: Path, content: bytes) -> None:
    """Whoever is killed meanwhile leaves the old file."""
    handle, partial = tempfile.mkstemp(prefix=f".{path.name[:32]}-", dir=path.parent)  # of mode 0600
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(partial).replace(path)
    except BaseException:
        Path(partial).unlink(missing_ok=True)
        raise
