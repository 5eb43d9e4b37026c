"""Calls of tools in the text of an answer, as models of the Hermes and Qwen families write them.

A call is `<tool_call>`, a JSON object with the function's name and arguments, `</tool_call>`. Some models leave the
tags away, or put a fence of code in their place: an answer that is nothing but such objects is calls too. They are read
as JSON and nothing else; what only looks like a call stays text.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, NoReturn

OPENING = "<tool_call>"
CLOSING = "</tool_call>"
_FENCE, _FENCE_END = "```json", "```"


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
        self._may_be_bare = True
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
        self._held += text
        self._may_be_bare = self._may_be_bare and _begins_bare(self._held)
        if self._may_be_bare and not ended:
            return "", []
        calls = bare_calls(self._held, self._names) if self._may_be_bare else []
        self._held = "" if calls else self._held
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


def bare_calls(text: str, names: Collection[str]) -> list[Call]:
    """The calls that a text is, without their tags; none where it is anything else."""
    text = text.strip()
    if text.startswith(_FENCE):
        text = text.removeprefix(_FENCE).removesuffix(_FENCE_END).strip()
    calls: list[Call] = []
    position = 0
    while position < len(text):
        try:
            value, position = _DECODER.raw_decode(text, position)
        except (ValueError, RecursionError):
            return []
        call = _as_call(value, names)
        if call is None:
            return []
        calls.append(call)
        position += len(text[position:]) - len(text[position:].lstrip())
    return calls


def parse_call(text: str, names: Collection[str]) -> Call | None:
    """The call that a JSON text is; None where it is none."""
    try:
        return _as_call(_DECODER.decode(text), names)
    except (ValueError, RecursionError):
        return None


def _as_call(value: Any, names: Collection[str]) -> Call | None:
    if not isinstance(value, dict) or set(value) != {"name", "arguments"}:
        return None
    name, arguments = value["name"], value["arguments"]
    if not isinstance(name, str) or name not in names or not isinstance(arguments, dict):
        return None
    return Call(name, json.dumps(arguments, ensure_ascii=False))


def _begins_bare(text: str) -> bool:
    """Whether a text may become calls without tags."""
    text = text.lstrip()
    return text.startswith(("{", _FENCE)) or _FENCE.startswith(text)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_constant)
