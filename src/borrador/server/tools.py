"""Calls of tools in the text of an answer, as models of the Hermes and Qwen families write them.

A call is `<tool_call>`, a JSON object with the function's name and arguments, `</tool_call>`. It is read as JSON and
nothing else; what only looks like a call stays text.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

OPENING = "<tool_call>"
CLOSING = "</tool_call>"


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a function.

    Attributes:
        name: of the function.
        arguments: a JSON object.
        id: by which its result is told.
    """

    name: str
    arguments: str
    id: str = field(default_factory=lambda: f"call_{secrets.token_hex(12)}")

    def as_json(self) -> dict[str, Any]:
        """As an entry of `tool_calls`."""
        return {"id": self.id, "type": "function", "function": {"name": self.name, "arguments": self.arguments}}


class CallReader:
    """Finds calls in a text that arrives in pieces; the result does not depend on how it is cut.

    White space before and after a call belongs to neither text nor call.

    Args:
        names: of functions that may be called.

    Attributes:
        found: how many calls there were.
    """

    def __init__(self, names: Collection[str]) -> None:
        self.found = 0
        self._names = names
        self._held = ""  # may be the beginning of a call, or is one
        self._in_call = False
        self._after_call = False

    def take(self, text: str, *, ended: bool) -> tuple[str, list[Call]]:
        """Read on.

        Args:
            text: what is new.
            ended: there is no more of it.

        Returns:
            The text outside of calls that is now certain, and the calls that are now complete.
        """
        outside: list[str] = []
        calls: list[Call] = []
        self._held += text
        while self._read_call(outside, calls) if self._in_call else self._read_text(outside):
            pass
        if ended and self._held:
            outside.append(OPENING + self._held if self._in_call else self._held)
            self._held = ""
        self.found += len(calls)
        return "".join(outside), calls

    def _read_text(self, outside: list[str]) -> bool:
        """Read up to a call; whether there is one."""
        if self._after_call:
            self._held = self._held.lstrip()
            self._after_call = not self._held
        text, opening, rest = self._held.partition(OPENING)
        self._in_call = bool(opening)
        certain = len(text.rstrip()) if self._in_call else _certain(text)
        outside.append(text[:certain])
        self._held = rest if self._in_call else text[certain:]
        return self._in_call

    def _read_call(self, outside: list[str], calls: list[Call]) -> bool:
        """Read up to the end of a call; whether it is there. What is no call stays text."""
        content, closing, rest = self._held.partition(CLOSING)
        if not closing:
            return False
        call = parse_call(content, self._names)
        if call is None:
            outside.append(OPENING + content + CLOSING)
        else:
            calls.append(call)
        self._held, self._in_call, self._after_call = rest, False, call is not None
        return True


def _certain(text: str) -> int:
    """How many characters at the beginning cannot belong to a call or the white space before it."""
    longest = min(len(OPENING) - 1, len(text))
    begun = next((size for size in range(longest, 0, -1) if OPENING.startswith(text[-size:])), 0)
    return len(text[: len(text) - begun].rstrip())


def parse_call(text: str, names: Collection[str]) -> Call | None:
    """The call that a JSON text is; None where it is none."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    name, arguments = (value.get("name"), value.get("arguments")) if isinstance(value, dict) else (None, None)
    if not isinstance(name, str) or name not in names or not isinstance(arguments, dict):
        return None
    return Call(name, json.dumps(arguments, ensure_ascii=False))
