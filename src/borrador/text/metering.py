"""What a template's work costs, and the filters that pay for it before they run."""

from __future__ import annotations

import contextlib
import functools
import json
import re
import time
from collections.abc import Callable, ItemsView, Iterable, Iterator, KeysView, ValuesView
from contextvars import ContextVar
from typing import Any, TypeVar

from jinja2 import pass_context
from jinja2.exceptions import SecurityError
from jinja2.runtime import Context
from jinja2.utils import Namespace

_MAX_INTEGER_BITS = 1024
_MAX_NUMERAL_CHARACTERS = 64
_MAX_INDENT = 64
_PLAIN_FORMAT = re.compile(r"(?:[^%]|%[sd%])*")
_CONTAINERS = (list, tuple, set, frozenset, KeysView, ValuesView, ItemsView)

Value = TypeVar("Value")


class BudgetError(Exception):
    """A template did more work than any chat needs."""


class Budget:
    """Work a template may do: units (a loop step, an element, a character of new text) and seconds."""

    def __init__(self, units: int, seconds: float) -> None:
        self._units = self._left = units
        self._seconds = seconds
        self._deadline = time.monotonic() + seconds

    def spend(self, units: int = 1) -> None:
        self._left -= units
        if self._left < 0:
            raise BudgetError(f"it takes more than {self._units} steps")
        if time.monotonic() > self._deadline:
            raise BudgetError(f"it takes more than {self._seconds:g} seconds")


current_budget: ContextVar[Budget] = ContextVar("template_budget")


@contextlib.contextmanager
def working_on(budget: Budget) -> Iterator[None]:
    """Let the templates of this thread spend from `budget`; none works outside."""
    token = current_budget.set(budget)
    try:
        yield
    finally:
        current_budget.reset(token)


def walk(value: Any, *, reads_text: bool) -> None:
    """Pay for every element a value holds, however often it is shared, and where its text is read for that too."""
    spend = current_budget.get().spend
    waiting = [value]
    while waiting:
        item = waiting.pop()
        spend(1 + len(item) if reads_text and isinstance(item, str) else 1)
        if isinstance(item, dict):
            waiting.extend((*item.keys(), *item.values()))
        elif isinstance(item, _CONTAINERS):
            waiting.extend(item)
        elif reads_text and isinstance(item, Namespace):
            raise SecurityError("a namespace has no text")


def charged(value: Value) -> Value:
    """A new value, paid for."""
    walk(value, reads_text=isinstance(value, str))
    return value


def spending(pieces: Iterable[str]) -> Iterator[str]:
    """Pieces of text on their way into a longer one, each paid for."""
    for piece in pieces:
        current_budget.get().spend(1 + len(piece))
        yield piece


def to_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    walk(value, reads_text=True)
    return str(value)


# These three ask for the context only so that jinja2 does not run them while it compiles.
@pass_context
def metered_steps(context: Context, values: Iterable[Value]) -> Iterator[Value]:  # noqa: ARG001
    for value in values:
        current_budget.get().spend()
        yield value


@pass_context
def metered_value(context: Context, value: Value) -> Value:  # noqa: ARG001
    return charged(value)


@pass_context
def metered_text(context: Context, values: Iterable[Any]) -> str:  # noqa: ARG001
    return "".join(spending(map(to_text, values)))


def metered(function: Callable[..., Any], *, reads_text: bool) -> Callable[..., Any]:
    """A filter that pays for its result, and where it turns its arguments into text, for that before."""

    @functools.wraps(function)  # keeps jinja2's marks for what else the function wants to be given
    def paid(*args: Any, **kwargs: Any) -> Any:
        if reads_text:
            walk(args, reads_text=True)
        return charged(function(*args, **kwargs))

    return paid


def of_numeral(convert: Callable[..., Any]) -> Callable[..., Any]:
    """A conversion to a number that refuses long numerals: reading them takes quadratic time."""

    def bounded(value: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(value, str) and len(value) > _MAX_NUMERAL_CHARACTERS:
            raise SecurityError(f"a number has at most {_MAX_NUMERAL_CHARACTERS} characters, got {len(value)}")
        return convert(value, *args, **kwargs)

    return bounded


def operation_cost(operator: str, left: Any, right: Any) -> int:
    """Units to pay before an operation whose result may be far larger than its operands."""
    if isinstance(left, int) and isinstance(right, int):
        bits = {"*": left.bit_length() + right.bit_length(), "**": left.bit_length() * max(right, 0)}.get(operator, 0)
        if bits > _MAX_INTEGER_BITS:
            raise SecurityError(f"a whole number has at most {_MAX_INTEGER_BITS} bits")
    elif operator == "*" and isinstance(left, int):
        return operation_cost(operator, right, left)
    elif operator == "*" and isinstance(right, int) and hasattr(left, "__len__"):
        return 1 + len(left) * max(right, 0)
    elif operator == "%" and isinstance(left, str):
        if not _PLAIN_FORMAT.fullmatch(left):
            raise SecurityError("format strings may use %s, %d and %% only")
        walk(right, reads_text=True)
    return 1


def join_texts(value: Iterable[Any], d: str = "") -> str:
    texts = list(spending(map(to_text, value)))
    current_budget.get().spend(len(d) * len(texts))
    return d.join(texts)


def replace_text(value: Any, old: str, new: str, count: int = -1) -> str:
    text = to_text(value)
    current_budget.get().spend(len(text) + text.count(old) * len(new))
    return text.replace(old, new, count)


def indent_text(value: Any, width: int = 4, first: bool = False, blank: bool = False) -> str:
    if not isinstance(width, int) or width > _MAX_INDENT:
        raise SecurityError(f"indent takes a width up to {_MAX_INDENT}")
    lines = to_text(value).split("\n")
    current_budget.get().spend(len(lines) * (1 + max(width, 0)))
    spaced = [" " * width + line if (first or i) and (blank or line) else line for i, line in enumerate(lines)]
    return charged("\n".join(spaced))


def to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    if indent is not None and not (isinstance(indent, int) and indent <= _MAX_INDENT):
        raise SecurityError(f"tojson takes an indent up to {_MAX_INDENT}")
    if separators is not None and sum(map(len, separators)) > _MAX_INDENT:
        raise SecurityError(f"tojson takes separators up to {_MAX_INDENT} characters")
    walk(value, reads_text=True)
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)
