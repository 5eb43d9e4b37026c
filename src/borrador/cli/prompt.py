"""The question: the argument and standard input joined."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from borrador.errors import UsageError
from borrador.types import Message
from borrador.values import is_unicode

MAX_PROMPT_BYTES = 64 * 2**20


def read_prompt(argument: str | None) -> str:
    """The argument, an empty line, and what standard input holds; a terminal is not read.

    Raises:
        UsageError: both are empty, one of them is not UTF-8, or standard input is larger than 64 MiB.
    """
    require_utf8("the prompt", argument)
    parts = [part for part in (argument or "", _read_standard_input()) if part.strip()]
    if not parts:
        hint = 'Say what to write: borrador run "Why is the sky blue?"'
        raise UsageError("the prompt must not be empty, and neither argument nor standard input holds text", hint)
    return "\n\n".join(parts)


def as_messages(question: str, system: str | None) -> Sequence[Message]:
    """The question as the user's message, after the system's where there is one."""
    opening: list[Message] = [{"role": "system", "content": system}] if system is not None else []
    return [*opening, {"role": "user", "content": question}]


def require_utf8(what: str, argument: str | None) -> None:
    """Raise UsageError for an argument of the command line that could not be decoded."""
    if argument is not None and not is_unicode(argument):
        raise UsageError(f"{what} must be UTF-8, and the argument is not", "Check the terminal's encoding.")


def _read_standard_input() -> str:
    if sys.stdin is None or sys.stdin.closed or sys.stdin.isatty():
        return ""
    content = sys.stdin.buffer.read(MAX_PROMPT_BYTES + 1)
    if len(content) > MAX_PROMPT_BYTES:
        raise UsageError(f"standard input may hold at most {MAX_PROMPT_BYTES} bytes, it holds more", "Send less text.")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"standard input must be UTF-8, byte {error.start} (0x{content[error.start]:02x}) is not"
        raise UsageError(message, "Convert it first, for example with iconv.") from None
    return text.removeprefix("\ufeff").removesuffix("\n").removesuffix("\r")
