"""Tables and paragraphs in Markdown, as lists of lines."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

_WIDTH = 118


def heading(text: str) -> list[str]:
    return [f"## {text}", ""]


def paragraph(text: str) -> list[str]:
    """Text whose lines are broken anew."""
    lines = textwrap.wrap(" ".join(text.split()), _WIDTH, break_long_words=False, break_on_hyphens=False)
    return [*lines, ""]


def table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Headings, and rows of cells."""
    body = [f"| {' | '.join(map(str, row))} |" for row in rows]
    return [f"| {' | '.join(headings)} |", f"|{'---|' * len(headings)}", *body, ""]


def percent(share: float, digits: int = 0, *, signed: bool = False) -> str:
    return f"{100 * share:{'+' if signed else ''}.{digits}f} %"
