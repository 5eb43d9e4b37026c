"""Rounds as a person can read them: what was proposed, what was accepted, what the target wrote instead."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple, dataclass

from rich.text import Text

from borrador.types import Consideration, Reason, RoundRecord

Piece = Callable[[int], str]

_MIN_NAME_WIDTH = 8
_MAX_NAME_WIDTH = 24


@dataclass(frozen=True, slots=True)
class Marks:
    """Signs that tell tokens apart where there is no colour."""

    accepted: str = "✓"
    rejected: str = "✗"
    arrow: str = "→"
    bonus: str = "+"
    plain: str = "="
    untested: str = "~"
    ended: str = "|"
    forced: str = "»"

    @property
    def all(self) -> str:
        return "".join(astuple(self))


UNICODE_MARKS = Marks()
ASCII_MARKS = Marks(accepted="v", rejected="x", arrow="->", forced=">")


def describe_marks(marks: Marks, *, shaped: bool = False) -> Text:
    """The line that explains the marks; for answers with a shape, the grammar's too."""
    grammar = ((f"{marks.forced} the only one the grammar allows", "magenta"), "  ") if shaped else ()
    return Text.assemble(
        (f"{marks.accepted} accepted", "green"),
        "  ",
        (f"{marks.rejected} proposed", "red"),
        (f" {marks.arrow} written by the target instead", "yellow"),
        "  ",
        (f"{marks.untested} proposed, not tested", "dim"),
        "  ",
        (f"{marks.bonus} bonus token", "cyan"),
        "  ",
        f"{marks.plain} nothing proposed",
        "  ",
        *grammar,
        (f"{marks.ended} not part of the text", "dim"),
    )


def drafter_width(drafters: Iterable[str]) -> int:
    """The width of the column that holds their names, or several joined; what is longer is shown by its end."""
    return min(max(_MIN_NAME_WIDTH, len("+".join(drafters))), _MAX_NAME_WIDTH)


def describe_round(
    record: RoundRecord, piece: Piece, marks: Marks = UNICODE_MARKS, width: int = _MIN_NAME_WIDTH
) -> Text:
    """One line for one round.

    Args:
        record: the round.
        piece: the text of a token.
        marks: signs to use.
        width: of the drafter's name.
    """
    line = Text(f"round {record.number:>3}  {record.draft.drafter[-width:]:<{width}}")
    accepted, missed, untested = _sort_proposed(record)
    own = record.verdict.next_token
    count = len(record.committed)
    forced = record.committed[len(accepted) + 1 :]
    _append(line, marks.accepted, accepted[:count], piece, "green")
    _append(line, marks.rejected, missed, piece, "red")
    if count > len(accepted):
        mark, style = _own_mark(record, marks)
        _append(line, mark, (own,), piece, style)
    _append(line, marks.forced, forced, piece, "magenta")
    _append(line, marks.ended, (*accepted, own)[count:], piece, "dim")
    _append(line, marks.untested, untested, piece, "dim")
    return line.append(f"  [draft {record.draft_s * 1e3:.1f} ms, pass {record.forward_s * 1e3:.1f} ms]", style="dim")


def describe_reason(record: RoundRecord, reason: Reason) -> Text:
    """One line that says why a round drafted what it did: every drafter, then the choice."""
    considered = "; ".join(map(_describe_consideration, reason.considered))
    rows = len(record.draft.tokens)
    chosen = (
        f"verify {rows}, {reason.expected:.1f} expected, {reason.round_s * 1e3:.1f} ms for {reason.plain_s * 1e3:.1f}: "
        f"{reason.speed:.2f}x"
        if rows
        else f"nothing, {reason.plain_s * 1e3:.1f} ms"
    )
    return Text(f"round {record.number:>3}  why: {considered}; so {chosen}", style="dim")


def _describe_consideration(considered: Consideration) -> str:
    drafter, proposed, expected, gain, note = considered
    drafter = drafter[-_MAX_NAME_WIDTH:]
    offer = f"proposed {proposed}, {expected:.1f} expected" if proposed else "proposed nothing"
    if gain is None:
        return f"{drafter} {note or offer}"
    return f"{drafter} {offer if proposed else 'not asked'} ({gain:.2f}x, {note})" if note else f"{drafter} not asked"


def _sort_proposed(record: RoundRecord) -> tuple[list[int], list[int], list[int]]:
    """The draft's tokens: accepted, rejected where the target chose another, never reached."""
    tokens, path = record.draft.tokens, record.verdict.path
    parents = record.draft.parent_indices
    last = path[-1] if path else -1
    ended = len(record.committed) < len(path)
    missed = [index for index in range(len(tokens)) if parents[index] == last and not ended]
    reached = {*path, *missed}
    untested = [index for index in range(len(tokens)) if index not in reached]
    return _pick(tokens, path), _pick(tokens, missed), _pick(tokens, untested)


def _pick(tokens: Sequence[int], indices: Iterable[int]) -> list[int]:
    return [tokens[index] for index in indices]


def _own_mark(record: RoundRecord, marks: Marks) -> tuple[str, str]:
    if not record.draft.tokens:
        return marks.plain, ""
    return (marks.bonus, "cyan") if record.verdict.bonus else (marks.arrow, "yellow")


def _append(line: Text, mark: str, tokens: Sequence[int], piece: Piece, style: str) -> None:
    for token in tokens:
        line.append(f" {mark} {quote(piece(token))}", style=style)


def quote(text: str) -> str:
    r"""A token's text with its spaces and line breaks visible; bytes that are no whole character stay as `\xe2`."""
    return re.sub(r"\\\\(x[0-9a-f]{2})", r"\\\1", json.dumps(text, ensure_ascii=False))
