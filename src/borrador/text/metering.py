"""What a template's work costs, and the filters that pay for it before they run."""

from __future__ import annotations

import contextlib
import functools
import json
import re
import time
from collections.abc import Callable, ItemsView, Iterable, Iterator, KeysView, Sequence, ValuesView
from contextvars import ContextVar
from typing import Any, TypeVar

from jinja2 import pass_context
from jinja2.exceptions import SecurityError
from jinja2.runtime import Context
from jinja2.utils import Namespace

_MAX_INTEGER_BITS = 1024
_MAX_NUMERAL_CHARACTERS = 64
_MAX_INDENT = 64
_CHARACTERS_PER_UNIT = 16
_ITERATOR_UNITS = 4
_PLAIN_FORMAT = re.compile(r"(?:[^%]|%[sd%])*")
_CUTTING = frozenset({"split", "rsplit", "splitlines"})
_CONTAINERS = (list, tuple, set, frozenset, KeysView, ValuesView, ItemsView)

Value = TypeVar("Value")


class BudgetError(Exception):
    """A template did more work than any chat needs."""


class Budget:
    """Work a template may do, in units and seconds.

    A unit is a loop step, an element of a value or 16 characters of text, read or written; a call is worth several. It
    takes half a microsecond at most. So what a template may do does not depend on how busy the machine is; the seconds
    are for what no unit counts.
    """

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


def text_cost(characters: int) -> int:
    """Units for so much text."""
    return 1 + characters // _CHARACTERS_PER_UNIT


def walk(value: Any, *, reads_text: bool) -> None:
    """Pay for every element a value holds, however often it is shared, and where its text is read for that too."""
    spend = current_budget.get().spend
    waiting = [value]
    while waiting:
        item = waiting.pop()
        spend(text_cost(len(item)) if reads_text and isinstance(item, str) else 1)
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
        current_budget.get().spend(text_cost(len(piece)))
        yield piece


def to_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    walk(value, reads_text=True)
    return str(value)


# These four ask for the context only so that jinja2 does not run them while it compiles.
@pass_context
def metered_steps(context: Context, values: Iterable[Value]) -> Iterator[Value]:  # noqa: ARG001
    for value in values:
        current_budget.get().spend()
        yield value


@pass_context
def metered_value(context: Context, value: Value) -> Value:  # noqa: ARG001
    return charged(value)


@pass_context
def metered_operand(context: Context, value: Value) -> Value:  # noqa: ARG001
    """A side of a comparison, which may read all of it."""
    walk(value, reads_text=True)
    return value


@pass_context
def metered_text(context: Context, values: Iterable[Any]) -> str:  # noqa: ARG001
    return "".join(spending(map(to_text, values)))


def metered(function: Callable[..., Any], *, reads_text: bool) -> Callable[..., Any]:
    """A filter that pays for its result, and where it reads the text of its arguments, for that before."""

    @functools.wraps(function)  # keeps jinja2's marks for what else the function wants to be given
    def paid(*args: Any, **kwargs: Any) -> Any:
        if reads_text:
            walk(args, reads_text=True)
        made = charged(function(*args, **kwargs))
        return _metered_iterator(made) if isinstance(made, Iterator) else made

    return paid


def _metered_iterator(values: Iterator[Value]) -> Iterator[Value]:
    for value in values:
        current_budget.get().spend(_ITERATOR_UNITS)
        yield value


def one_by_one(function: Callable[..., Any]) -> Callable[..., Any]:
    """A filter that pays for each character or element of its arguments before: it handles them one by one."""

    @functools.wraps(function)
    def paid(*args: Any, **kwargs: Any) -> Any:
        current_budget.get().spend(sum(len(argument) for argument in args if hasattr(argument, "__len__")))
        return function(*args, **kwargs)

    return paid


def compared(test: Callable[..., Any]) -> Callable[..., Any]:
    """A test that pays for what it compares."""

    @functools.wraps(test)
    def paid(*args: Any) -> Any:
        walk(args, reads_text=True)
        return test(*args)

    return paid


def method_cost(text: str, name: str, arguments: Sequence[Any]) -> int:
    """Units to pay before a method of a text, which may cut it into as many pieces as it has characters."""
    cost = text_cost(len(text)) + sum(text_cost(len(each)) for each in arguments if isinstance(each, str))
    if name not in _CUTTING:
        return cost
    mark = arguments[0] if arguments and isinstance(arguments[0], str) else ""
    return cost + (text.count(mark) if mark else len(text))


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
        copies = len(left) * max(right, 0)
        return text_cost(copies) if isinstance(left, str) else 1 + copies
    elif operator == "%" and isinstance(left, str):
        if not _PLAIN_FORMAT.fullmatch(left):
            raise SecurityError("format strings may use %s, %d and %% only")
        walk(right, reads_text=True)
    return 1


def join_texts(value: Iterable[Any], d: str = "") -> str:
    texts = list(spending(map(to_text, value)))
    current_budget.get().spend(text_cost(len(d) * len(texts)))
    return d.join(texts)


def replace_text(value: Any, old: str, new: str, count: int = -1) -> str:
    text = to_text(value)
    current_budget.get().spend(text_cost(len(text) + text.count(old) * (1 + len(new))))
    return text.replace(old, new, count)


def indent_text(value: Any, width: int = 4, first: bool = False, blank: bool = False) -> str:
    if not isinstance(width, int) or width > _MAX_INDENT:
        raise SecurityError(f"indent takes a width up to {_MAX_INDENT}")
    lines = to_text(value).split("\n")
    current_budget.get().spend(len(lines) + text_cost(len(lines) * max(width, 0)))
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
