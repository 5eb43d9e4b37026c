"""Calls of tools in the text of an answer.

A call is JSON in a frame that is the model's, see `borrador.server.tool_syntax`. Some models leave the frame away, or
put a fence of code in its place: an answer that is nothing but such objects is calls too. They are read as JSON and
nothing else; what only looks like a call stays text.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any, NoReturn

from borrador.server.tool_syntax import HERMES, Syntax

_FENCE, _FENCE_END = "```json", "```"


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a function, or a part of one.

    Attributes:
        name: of the function.
        arguments: a JSON object, or a piece of it.
        id: by which its result is told.
        is_rest: it goes on with the arguments of the call before it.
    """

    name: str
    arguments: str
    id: str = field(default_factory=lambda: f"call_{secrets.token_hex(12)}")
    is_rest: bool = False

    def as_json(self) -> dict[str, Any]:
        """As an entry of `tool_calls`."""
        return {"id": self.id, "type": "function", "function": {"name": self.name, "arguments": self.arguments}}


class CallReader:
    """Finds calls in a text that arrives in pieces; the result does not depend on how it is cut.

    White space before and after a call belongs to neither text nor call.

    Args:
        names: of functions that may be called.
        syntax: the model's form of calls.
        streams: tell a call as soon as its name is known, and its arguments as they are written. That they are no JSON
            object is then found out when they have been told.

    Attributes:
        found: how many calls there were.
    """

    def __init__(self, names: Collection[str], syntax: Syntax = HERMES, *, streams: bool = False) -> None:
        self.found = 0
        self._names = names
        self._syntax = syntax
        self._streams = streams
        self._told = _Told(names, syntax)
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
            The text outside of calls that is now certain, and the calls, or parts of them, that now are.
        """
        outside: list[str] = []
        calls: list[Call] = []
        self._held += text
        self._may_be_bare = self._may_be_bare and self._begins_bare()
        if self._may_be_bare:
            self._read_bare(outside, calls, ended=ended)
        else:
            while self._read_call(outside, calls, ended=ended) if self._in_call else self._read_text(outside):
                pass
        if ended and self._held:
            outside.append(self._syntax.opening + self._held if self._in_call else self._held)
            self._held = ""
        return "".join(outside), calls

    def _begins_bare(self) -> bool:
        """Whether the text may become calls without a frame."""
        text = self._held.lstrip()
        opening = ("{", "[", _FENCE) if self._syntax.is_list else ("{", _FENCE)
        if self._syntax.is_list and self._syntax.opening.startswith(text[: len(self._syntax.opening)]):
            return len(text) < len(self._syntax.opening)
        return text.startswith(opening) or _FENCE.startswith(text)

    def _read_bare(self, outside: list[str], calls: list[Call], *, ended: bool) -> None:
        if ended:
            self._end_calls(self._held, outside, calls, framed=False)
        elif self._streams:
            calls += self._told.advance(self._held)

    def _read_text(self, outside: list[str]) -> bool:
        """Read up to a call; whether there is one."""
        if self._after_call:
            self._held = self._held.lstrip()
            self._after_call = not self._held
        text, opening, rest = self._held.partition(self._syntax.opening)
        self._in_call = bool(opening)
        certain = len(text.rstrip()) if self._in_call else _certain(text, self._syntax.opening)
        outside.append(text[:certain])
        self._held = rest if self._in_call else text[certain:]
        return self._in_call

    def _read_call(self, outside: list[str], calls: list[Call], *, ended: bool) -> bool:
        """Read up to the end of a call; whether it is there."""
        closing = self._syntax.closing
        content, closed, rest = self._held.partition(closing) if closing else (self._held, "", "")
        if closed or (ended and not closing):
            self._end_calls(content, outside, calls, framed=True)
            self._held, self._in_call = rest, False
            return bool(rest)
        if self._streams:
            calls += self._told.advance(content)
            if ended and self._told.calls:  # cut short: what was told is no text any more
                self.found += self._told.whole
                self._held = ""
        return False

    def _end_calls(self, content: str, outside: list[str], calls: list[Call], *, framed: bool) -> None:
        """Read calls that are whole. What is none stays text, unless it was told as one."""
        read = read_calls(content, self._names, self._syntax)
        calls += self._told.advance(content) if self._streams else ()
        told, self._told = self._told, _Told(self._names, self._syntax)
        calls += read[len(told.calls) :]
        self.found += len(read) or told.whole
        self._after_call = bool(read)
        self._held = ""
        if told.calls:
            outside.append("" if read else told.rest(content))
        elif not read:
            outside.append(self._syntax.opening + content + self._syntax.closing if framed else content)


class _Told:
    """Follows the JSON of calls while it is written.

    Attributes:
        calls: that were told.
        whole: how many of them have come to their end, with JSON objects as arguments.
    """

    def __init__(self, names: Collection[str], syntax: Syntax) -> None:
        self.calls: list[Call] = []
        self.whole = 0
        self._names = names
        self._head = syntax.head
        self._at = 0  # characters that were read
        self._depth = 0
        self._in_text = False
        self._is_escaped = False
        self._arguments = ""

    def advance(self, content: str) -> Iterator[Call]:
        """What is new of the calls, where this is all that was written of them."""
        while True:
            if not self._depth:
                head = self._head.match(content, self._at)
                if head is None or head["name"] not in self._names:
                    return
                self._at, self._arguments = head.end(), ""
                self.calls.append(Call(head["name"], ""))
                yield self.calls[-1]
            start = self._at
            self._scan(content)
            self._arguments += content[start : self._at]
            if self._at > start:
                yield Call(self.calls[-1].name, content[start : self._at], self.calls[-1].id, is_rest=True)
            if self._depth:
                return
            self.whole += _is_object(self._arguments)

    def rest(self, content: str) -> str:
        """What stands behind the calls that were told."""
        return content[self._at :].lstrip("}] \t\r\n;,")

    def _scan(self, content: str) -> None:
        """Go on to the end of the arguments, as far as they are there."""
        while self._at < len(content):
            self._count(content[self._at])
            self._at += 1
            if not self._depth:
                return

    def _count(self, character: str) -> None:
        if self._in_text:
            self._in_text = self._is_escaped or character != '"'
            self._is_escaped = character == "\\" and not self._is_escaped
        elif character == '"':
            self._in_text = True
        else:
            self._depth += (character in "{[") - (character in "]}")


def _certain(text: str, opening: str) -> int:
    """How many characters at the beginning cannot belong to a call or the white space before it."""
    longest = min(len(opening) - 1, len(text))
    begun = next((size for size in range(longest, 0, -1) if opening.startswith(text[-size:])), 0)
    return len(text[: len(text) - begun].rstrip())


def read_calls(text: str, names: Collection[str], syntax: Syntax) -> list[Call]:
    """The calls that a text is; none where it is anything else."""
    text = text.strip().removeprefix(syntax.opening).strip()
    if text.startswith(_FENCE):
        text = text.removeprefix(_FENCE).removesuffix(_FENCE_END).strip()
    calls: list[Call] = []
    while text:
        try:
            value, end = _DECODER.raw_decode(text)
        except (ValueError, RecursionError):
            return []
        for each in value if syntax.is_list and isinstance(value, list) else [value]:
            call = _as_call(each, names, syntax)
            if call is None:
                return []
            calls.append(call)
        text = text[end:].lstrip(" \t\r\n;")
    return calls


def _as_call(value: Any, names: Collection[str], syntax: Syntax) -> Call | None:
    if not isinstance(value, dict) or value.keys() - syntax.optional != {"name", syntax.arguments}:
        return None
    name, arguments = value["name"], value[syntax.arguments]
    if not isinstance(name, str) or name not in names or not isinstance(arguments, dict):
        return None
    return Call(name, json.dumps(arguments, ensure_ascii=False))


def _is_object(text: str) -> bool:
    try:
        return isinstance(_DECODER.decode(text), dict)
    except (ValueError, RecursionError):
        return False


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_constant)
