"""From an answer of a model to a program that can be tested."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass

from borrador.errors import UsageError

_FENCE = re.compile(r"^[ \t]*```[^\n`]*\n(.*?)(?:^[ \t]*```[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)
_CODE_STARTS = re.compile(r"(async )?def |class |import |from |@")
_CODE_GOES_ON = re.compile(
    r"\s|$|(async )?def |class |import |from |@|#|[)\]}]|(if|for|while|try|except|else|with)\b|\w+ *="
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A function to write, and how it is tested.

    Attributes:
        id: its name.
        prompt: the beginning of the program: imports, the function's head, its docstring.
        test: Python that defines `check(candidate)`, which raises where the candidate is wrong.
        entry_point: the function's name.

    Raises:
        UsageError: the entry point is no name.
    """

    id: str
    prompt: str
    test: str
    entry_point: str

    def __post_init__(self) -> None:
        if not self.entry_point.isidentifier():
            raise UsageError(
                f"entry_point must be a function's name, {self.id} has {self.entry_point!r:.60}",
                "Give the name of the function that the tests call.",
            )


def write_program(problem: Problem, answer: str) -> str | None:
    """The problem's function as the answer has it: written whole, or going on where the prompt ends.

    Of several blocks of code, the first that defines the function counts. An answer that was cut keeps what it has.

    Returns:
        the program without its tests; None where the answer holds no code.
    """
    blocks = [textwrap.dedent(block) if _starts_indented_head(block) else block for block in _FENCE.findall(answer)]
    definition = re.compile(rf"^(async )?def {re.escape(problem.entry_point)}\b", re.MULTILINE)
    whole = next(filter(definition.search, blocks), None)
    if whole is None and not blocks and definition.search(answer):
        whole = _cut_prose(answer)
    if whole is not None:
        return f"{_close_stub(problem.prompt)}\n\n{whole}"
    body = next(filter(str.strip, blocks), None) if blocks else _cut_body(answer)
    return None if body is None else problem.prompt.rstrip("\n") + "\n" + _indent_body(body)


def _starts_indented_head(block: str) -> bool:
    """A block inside a list is indented as a whole; a function's body alone is so too, and has to stay so."""
    return _CODE_STARTS.match(block.lstrip()) is not None


def _close_stub(prompt: str) -> str:
    """The prompt as code of its own: its imports and helpers count, the function is defined again behind it."""
    last_line = prompt.rstrip().rpartition("\n")[2]
    indent = last_line[: len(last_line) - len(last_line.lstrip())] or "    "
    return f"{prompt.rstrip()}\n{indent}pass"


def _cut_prose(answer: str) -> str:
    """The lines of code of an answer that marks them by nothing."""
    lines = answer.splitlines()
    start = next(index for index, line in enumerate(lines) if _CODE_STARTS.match(line))
    return "\n".join(_take_code(lines[start:]))


def _cut_body(answer: str) -> str | None:
    """The indented lines that an answer begins with; None where there are none."""
    lines = answer.strip("\n").splitlines()
    if not answer.strip() or not lines[0].startswith((" ", "\t")):
        return None
    return "\n".join(_take_code(lines))


def _take_code(lines: list[str]) -> list[str]:
    end = next((index for index, line in enumerate(lines) if not _CODE_GOES_ON.match(line)), len(lines))
    return lines[:end]


def _indent_body(body: str) -> str:
    """A body as a function has it. Models leave out the indent of all lines, of the first alone, or of none."""
    first, _, rest = body.strip("\n").partition("\n")
    if first.startswith((" ", "\t")):
        return body
    only_first = rest.startswith((" ", "\t")) and not first.rstrip().endswith(":")
    return f"    {first}\n{rest}" if only_first else textwrap.indent(body, "    ")
