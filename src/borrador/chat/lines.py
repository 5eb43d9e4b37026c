"""What a user says, an utterance at a time: a line, or several between triple quotes."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import BinaryIO, Protocol

from borrador.errors import UsageError

QUOTES = '"""'
_MAX_BYTES = 64 * 2**20
_OPENING = re.compile(r'\A\s*(/\w+\s+)?"""')


class Lines(Protocol):
    """Where utterances come from."""

    def read(self) -> str:
        """The next one.

        Raises:
            EOFError: there is no more.
            KeyboardInterrupt: the user does not want to say it.
        """
        ...


class PlainLines:
    """Utterances from a file or a pipe.

    Args:
        source: UTF-8.
    """

    def __init__(self, source: BinaryIO) -> None:
        self._source = source

    def read(self) -> str:
        text = self._read_line()
        while is_open(text):
            try:
                text += "\n" + self._read_line()
            except EOFError:
                break
        return unquote(text)

    def _read_line(self) -> str:
        content = self._source.readline(_MAX_BYTES + 1)
        if not content:
            raise EOFError
        if len(content) > _MAX_BYTES:
            raise UsageError(f"a line may hold at most {_MAX_BYTES} bytes, one holds more", "Send less text.")
        try:
            return content.decode("utf-8").removesuffix("\n").removesuffix("\r").removeprefix("\ufeff")
        except UnicodeDecodeError as error:
            byte = f"byte {error.start} of a line (0x{content[error.start]:02x})"
            raise UsageError(
                f"standard input must be UTF-8, {byte} is not", "Convert it first, for example with iconv."
            ) from None


class PromptedLines:
    """Utterances from a terminal.

    Args:
        prompt: reads one with an editor of its own, in which lines can be added while `is_open`.
    """

    def __init__(self, prompt: Callable[[], str]) -> None:
        self._prompt = prompt

    def read(self) -> str:
        return unquote(self._prompt())


def is_open(text: str) -> bool:
    """Quotes were opened at the beginning and not closed at the end."""
    opening = _OPENING.match(text)
    return opening is not None and not text[opening.end() :].rstrip().endswith(QUOTES)


def unquote(text: str) -> str:
    """The text without the quotes around it."""
    opening = _OPENING.match(text)
    if opening is None:
        return text
    body = text[opening.end() :].rstrip().removesuffix(QUOTES)
    return (opening.group(1) or "") + body.strip("\n")
