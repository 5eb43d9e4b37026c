"""Numbers as the page writes them. Each carries its exact value, and its place in the record where it stands there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from markupsafe import Markup

from borrador.bench.record import Record

NOTHING = "-"
FORMS: Mapping[str, Callable[[float], str]] = {
    "count": "{:,.0f}".format,
    "gibibytes": lambda value: f"{value / 2**30:.1f} GiB",
    "gigabytes_per_second": lambda value: f"{value / 1e9:.1f} GB/s",
    "gigaproducts_per_second": lambda value: f"{value / 1e9:.0f} G/s",
    "megabytes": lambda value: f"{value / 1e6:,.0f} MB",
    "millions": lambda value: f"{value / 1e6:,.0f} M",
    "milliseconds": lambda value: f"{value * 1e3:.1f} ms",
    "plain": "{:.15g}".format,
    "seconds": "{:.2f} s".format,
    "share": "{:.0%}".format,
    "times": "{:.2f}x".format,
    "tokens": "{:.2f}".format,
    "tokens_per_second": lambda value: f"{value:.1f}" if value < 100 else f"{value:.0f}",
}


@dataclass(frozen=True, slots=True)
class Number:
    """A value and the form it is written in.

    Attributes:
        value: None is written as nothing known.
        form: one of `FORMS`.
        path: where it stands in the record, a JSON pointer (RFC 6901); empty where it is worked out from the record.
    """

    value: float | None
    form: str
    path: str = ""

    def __str__(self) -> str:
        return NOTHING if self.value is None else FORMS[self.form](self.value)

    def __html__(self) -> Markup:
        if self.value is None:
            return Markup(NOTHING)
        place = Markup(' data-path="{}"').format(self.path) if self.path else Markup()
        return Markup('<data value="{}" data-form="{}"{}>{}</data>').format(
            repr(self.value), self.form, place, str(self)
        )


@dataclass(frozen=True, slots=True)
class Spread:
    """A value and, where it has one, the interval around it."""

    value: Number
    low: Number
    high: Number

    @property
    def text(self) -> Markup:
        """The interval, with a word between its ends."""
        return Markup("{} to {}").format(self.low, self.high)

    def __html__(self) -> Markup:
        if self.low.value is None:
            return self.value.__html__()
        return Markup("{} ({})").format(self.value, self.text)


class Places:
    """The record's numbers by their places."""

    def __init__(self, record: Record) -> None:
        self._record = msgspec.to_builtins(record, str_keys=True)

    def number(self, form: str, *steps: str | int) -> Number:
        """The number that these keys and indices lead to; without a value where the way ends before them."""
        value = self._record
        for step in steps:
            value = None if value is None else value[step]
        return Number(value, form, "".join(f"/{_escape(str(step))}" for step in steps))

    def spread(self, form: str, *steps: str | int) -> Spread:
        """The `Ratio` that these keys lead to."""
        low, high = (self.number(form, *steps, "interval", index) for index in (0, 1))
        return Spread(self.number(form, *steps, "median"), low, high)


def resolve(document: Any, path: str) -> Any:
    """What a JSON pointer leads to in a parsed document."""
    for step in path.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        document = document[int(key) if isinstance(document, list) else key]
    return document


def _escape(step: str) -> str:
    return step.replace("~", "~0").replace("/", "~1")
