"""What a chat shows: answers on standard output, everything else on standard error."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TextIO

from rich.console import Console
from rich.style import Style

from borrador.chat.backend import Figures, Span
from borrador.errors import BorradorError
from borrador.types import Origin

# A terminal must not obey what a model writes; line breaks and tabs are text.
_CONTROLS = {code: None for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"}
_COLOURS = {Origin.DRAFT: "green", Origin.BONUS: "cyan", Origin.GRAMMAR: "magenta", Origin.TARGET: None}


class Screen:
    """Both streams of a chat.

    Args:
        output: for answers.
        notices: for everything else.
        quiet: no notes and no footers.

    Attributes:
        coloured: answers show where their tokens came from.
    """

    def __init__(self, output: TextIO, notices: Console, *, quiet: bool = False) -> None:
        self._output = output
        self._notices = notices
        self._quiet = quiet
        self._ends_line = True
        self.coloured = False

    @property
    def can_colour(self) -> bool:
        """Answers go to a terminal."""
        return self._output.isatty()

    def write(self, spans: Sequence[Span]) -> None:
        """Text of an answer that became certain together."""
        for span in spans:
            text = span.text.translate(_CONTROLS) if self._output.isatty() else span.text
            self._output.write(_style(span.origin).render(text) if self.coloured and text else text)
            self._ends_line = text.endswith("\n") if text else self._ends_line
        self._output.flush()

    def end_answer(self) -> None:
        """Let the next thing begin a line of its own."""
        if not self._ends_line:
            self._output.write("\n")
            self._output.flush()
        self._ends_line = True

    def footer(self, figures: Figures) -> None:
        """The line below an answer."""
        if not self._quiet:
            separator = " · " if self._encodes("·") else ", "
            self.say(separator.join(describe_figures(figures)))

    def note(self, sentence: str) -> None:
        """Something good to know."""
        if not self._quiet:
            self.say(sentence)

    def say(self, text: str, style: str = "dim") -> None:
        """What was asked for."""
        self._notices.print(text.translate(_CONTROLS), style=style, soft_wrap=not self._notices.is_terminal)

    def error(self, error: BorradorError) -> None:
        """Why something was not done, and what to do."""
        self.say(f"error: {error}", style="red")
        if error.hint:
            self.say(f"hint: {error.hint}", style="cyan")

    def _encodes(self, text: str) -> bool:
        try:
            text.encode(self._notices.encoding)
        except (UnicodeEncodeError, LookupError):
            return False
        return True


def describe_figures(figures: Figures) -> list[str]:
    """What is known of an answer, in a few words each."""
    tested, accepted = figures.draft_tokens_tested, figures.draft_tokens_accepted
    parts = [
        "stopped" if figures.finish_reason == "cancelled" else "",
        f"{figures.tokens_per_second:.1f} tok/s" if figures.tokens_per_second else "",
        "" if figures.tokens is None else f"{figures.tokens} token{'' if figures.tokens == 1 else 's'}",
        f"{accepted / tested:.0%} of tested draft tokens accepted".replace("%", " %")
        if tested and accepted is not None
        else "",
        f"{figures.speedup:.1f}x" if figures.speedup else "",
    ]
    return [part for part in parts if part] or ["done"]


def _style(origin: Origin | None) -> Style:
    """Accepted drafts are underlined too: colours can be missing, or not be seen."""
    colour = None if origin is None or os.environ.get("NO_COLOR") else _COLOURS[origin]
    return Style(color=colour, underline=origin is Origin.DRAFT)
