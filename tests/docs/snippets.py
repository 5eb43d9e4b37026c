"""The commands and examples that the documentation shows, as they stand there."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
_BESIDE = ("README.md", "README.es.md", "CONTRIBUTING.md", "SECURITY.md")
PAGES = (*(ROOT / name for name in _BESIDE), *sorted((ROOT / "docs").rglob("*.md")))
SHELLS = ("sh", "console")
# What else may stand in a fence; a fence of any other kind would hide a command from these tests.
OTHERS = ("python", "text", "toml", "json")
PROGRAMS = ("borrador", ".venv/bin/borrador", "make", "pip", "python", "curl", "pytest", "mkdocs", "apt-get", "source")

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_ASSIGNMENT = re.compile(r"[A-Z_]+=\S*")
_SPAN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")


class Snippet(NamedTuple):
    """A piece of code.

    Attributes:
        page: where it stands, from the root.
        line: of the page.
        kind: of the fence; `span` within a sentence.
        text: of it.
    """

    page: str
    line: int
    kind: str
    text: str

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"


def fences(page: Path) -> Iterator[Snippet]:
    """The fenced blocks of a page."""
    text = page.read_text(encoding="utf-8")
    for match in _FENCE.finditer(text):
        yield Snippet(_name(page), _line(text, match.start()), match[1], match[2])


def spans(page: Path) -> Iterator[Snippet]:
    """Code within the sentences and tables of a page."""
    text = page.read_text(encoding="utf-8")
    prose = _FENCE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    for match in _SPAN.finditer(prose):
        yield Snippet(_name(page), _line(text, match.start()), "span", match[1])


def commands(page: Path) -> Iterator[Snippet]:
    """What a reader can type: the commands of shell blocks, and those within sentences."""
    for block in fences(page):
        if block.kind in SHELLS:
            for offset, text in _statements(_typed(block)):
                yield block._replace(line=block.line + 1 + offset, text=text)
    for span in spans(page):
        words = [word for word in span.text.split() if not _ASSIGNMENT.fullmatch(word)]
        if words and words[0] in PROGRAMS:
            yield span


def _typed(block: Snippet) -> list[str]:
    """The lines of a block that are typed; what they print is left empty."""
    lines = block.text.splitlines()
    if block.kind == "sh":
        return lines
    return [line[2:] if line.startswith("$ ") else "" for line in lines]


def _statements(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Whole commands, with the lines that they begin in."""
    begun: list[str] = []
    for number, line in enumerate(lines):
        begun.append(line)
        text = "\n".join(begun)
        if _is_whole(text):
            if shlex.split(text, comments=True):
                yield number - len(begun) + 1, text.strip()
            begun = []
    if begun:
        raise ValueError(f"a command has no end: {begun}")


def _is_whole(text: str) -> bool:
    try:
        words = shlex.split(text, comments=True)
    except ValueError:
        return False
    return not text.rstrip().endswith("\\") and words.count("for") == words.count("done")


def _name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1
