"""Checks of values that users give. Each returns the value in its plain Python type, or says which rule it breaks."""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Sequence
from typing import Any

from borrador.errors import UsageError

_MAX_TOKEN_IDS = 1 << 20
_NAMESPACE = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_NAMESPACE_RULE = "1 to 64 lower-case letters, digits, dots, underscores and hyphens, and begin with a letter or digit"


def number(name: str, value: Any, low: float, high: float, *, open_low: bool = False, open_high: bool = False) -> float:
    """A real number in the interval, of whatever type (NumPy's too, truth values not).

    Raises:
        UsageError: it is something else, not a number, or outside.
    """
    given: object = value
    if isinstance(given, bool) or not isinstance(given, numbers.Real):
        raise UsageError(f"{name} must be a number, got {value!r:.80}", f"Give a number from {low:g} to {high:g}.")
    below = value <= low if open_low else value < low
    above = value >= high if open_high else value > high
    if math.isnan(value) or below or above:
        interval = f"{'(' if open_low else '['}{low:g}, {high:g}{')' if open_high else ']'}"
        raise UsageError(f"{name} must be in {interval}, got {value!s:.80}", "Choose a value inside the interval.")
    return float(value)


def integer(name: str, value: Any, low: int, high: int) -> int:
    """A whole number within the limits, of whatever integer type (NumPy's too, truth values not).

    Raises:
        UsageError: it is something else, or outside.
    """
    given: object = value
    if isinstance(given, bool) or not isinstance(given, numbers.Integral):
        raise UsageError(f"{name} must be a whole number, got {value!r:.80}", f"Give one of at least {low}.")
    if not low <= value <= high:
        shown = value if abs(int(value)) < 10**40 else "one of more than 40 digits"
        raise UsageError(f"{name} must be from {low} to {high}, got {shown}", "Choose a value inside the limits.")
    return int(value)


def flag(name: str, value: Any) -> bool:
    """A truth value. Raises UsageError where it is something else."""
    if not isinstance(value, bool):
        raise UsageError(f"{name} must be true or false, got {value!r:.80}", "Give True or False.")
    return value


def token_ids(name: str, value: Any, most: int = _MAX_TOKEN_IDS) -> tuple[int, ...]:
    """A list of token ids, without repetitions. Whether the model has them is not known here.

    Raises:
        UsageError: it is something else, or longer than `most`.
    """
    if isinstance(value, str | bytes) or not isinstance(value, Sequence | frozenset | set):
        raise UsageError(f"{name} must be a list of token ids, got {value!r:.80}", "Give a list of whole numbers.")
    if len(value) > most:
        raise UsageError(f"{name} takes at most {most} ids, got {len(value)}", "Remove some of them.")
    return tuple(dict.fromkeys(token_id(f"every id of {name}", item) for item in value))


def token_id(name: str, value: Any) -> int:
    """One token id. Raises UsageError where it is something else."""
    return integer(name, value, 0, 2**31 - 1)


def namespace(name: str, value: Any) -> str:
    """The name of a namespace, which is part of a file's name too. Raises UsageError where it is none."""
    if not isinstance(value, str) or not _NAMESPACE.fullmatch(value):
        raise UsageError(f"{name} must be {_NAMESPACE_RULE}, got {value!r:.80}", "Choose another name.")
    return value


def is_unicode(text: str) -> bool:
    """Whether a string can be written as UTF-8: it holds no lone surrogates, as undecodable arguments do."""
    return not any("\ud800" <= character <= "\udfff" for character in text)
