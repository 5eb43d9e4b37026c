"""Bodies of requests: JSON in its strict form, read in a time and to a depth that its sender does not decide."""

from __future__ import annotations

import codecs
import json
import math
import re
from typing import Any, NoReturn

import numpy as np

from borrador.errors import UsageError

MAX_DEPTH = 64
MAX_VALUES = 1 << 17  # as many token ids take about 10 ms to read
MAX_TEXTS = 1 << 15  # with keys; as many take about 30 ms

_LARGE_NUMBER = re.compile(rb"\d{19}|[eE]\+?\d{3}")
_HALF_OF_PAIR = re.compile(rb"\\u[dD][89a-fA-F]")
_SEND_FEWER = "Send fewer of them."
_GIVE_OBJECT = 'Send a JSON object, such as {"prompt": "Once"}, as UTF-8.'


class JsonError(UsageError):
    """A request's body is not JSON, or not of the strict form and size that is read here."""


def parse_json(body: bytes, depth: int = MAX_DEPTH) -> dict[str, Any]:
    """The object that is a request's body.

    Args:
        body: as it arrived.
        depth: levels of nesting, at most.

    Raises:
        JsonError: it is not a JSON object in UTF-8; it repeats a key, holds NaN or Infinity, a number that neither 64
            bits nor a double can hold, a lone surrogate or a NUL, or has too many levels, values or texts.
    """
    text = _decode(body)
    plain = body.replace(b"\\\\", b"").replace(b'\\"', b"")  # of the escapes those stay that are not about quotes
    if plain.count(b'"') > 2 * MAX_TEXTS:
        raise JsonError(f"the body must hold at most {MAX_TEXTS} texts and keys, it holds more", _SEND_FEWER)
    outside = b"".join(plain.split(b'"')[::2])
    _check_extent(outside, depth)
    value = _load(text, careful=_LARGE_NUMBER.search(outside) is not None)
    if not isinstance(value, dict):
        raise JsonError(f"the body must be a JSON object, got {_KINDS[type(value)]}", _GIVE_OBJECT)
    if b"\\u0000" in plain:
        raise JsonError("texts must not hold the character NUL, one does", "Remove \\u0000.")
    if _HALF_OF_PAIR.search(plain) is not None:
        _check_pairs(value)
    return value


def _decode(body: bytes) -> str:
    if not body.strip(b" \t\r\n"):
        raise JsonError("the body must be a JSON object, it is empty", _GIVE_OBJECT)
    if body.startswith(codecs.BOM_UTF8):
        raise JsonError("the body must begin with {, it begins with a byte order mark", "Write it without one.")
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise JsonError(f"the body must be valid UTF-8, byte {error.start} is not", _GIVE_OBJECT) from None


def _check_extent(outside: bytes, most: int) -> None:
    """Count levels and values in what stands outside of strings, before anything is built that could be deep."""
    symbols = np.frombuffer(outside, np.uint8)
    opens = (symbols == ord("[")) | (symbols == ord("{"))
    closes = (symbols == ord("]")) | (symbols == ord("}"))
    deepest = int(np.cumsum(opens.astype(np.int32) - closes).max(initial=0))
    if deepest > most:
        raise JsonError(f"the body must be nested at most {most} deep, it is {deepest} deep", "Make it flatter.")
    values = int(np.count_nonzero(opens)) + outside.count(b",")
    if values > MAX_VALUES:
        raise JsonError(f"the body must hold at most {MAX_VALUES} values, it holds more", _SEND_FEWER)


def _load(text: str, *, careful: bool) -> Any:
    """Numbers are looked at only where a large one is about: a call for each of them takes longer than reading them."""
    numbers: dict[str, Any] = {"parse_int": _bounded, "parse_float": _finite} if careful else {}
    try:
        return json.loads(text, object_pairs_hook=_unique_keys, parse_constant=_no_constant, **numbers)
    except json.JSONDecodeError as error:
        raise JsonError(f"the body must be JSON: {error}", _GIVE_OBJECT) from None


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            _refuse(f"a key must occur once in an object, {key!r:.60} occurs twice")
        seen.add(key)
    return found


def _bounded(digits: str) -> int:
    value = int(digits) if len(digits) <= 20 else 2**64
    if not -(2**63) <= value < 2**64:
        _refuse(f"whole numbers must fit into 64 bits, {digits:.24} does not")
    return value


def _finite(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        _refuse(f"numbers must be finite, {digits:.24} is not")
    return value


def _no_constant(name: str) -> NoReturn:
    _refuse(f"numbers must be finite, {name} is not")


def _check_pairs(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        _refuse("texts must be valid Unicode, one holds a lone surrogate")


def _refuse(sentence: str) -> NoReturn:
    raise JsonError(sentence, "Correct the body.")


_KINDS: dict[type, str] = {
    list: "a list",
    str: "text",
    int: "a number",
    float: "a number",
    bool: "a truth value",
    type(None): "null",
}
