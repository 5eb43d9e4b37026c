"""Files of prompts, told apart by what is in them; any of them may be compressed with gzip.

- JSON Lines of our own: `id`, `task`, and `turns` (the first one is asked) or `prompt`.
- Spec-Bench's question.jsonl: `question_id`, `category`, `turns`. Source: Xia et al., arXiv 2401.07851.
- HumanEval.jsonl: `task_id`, `prompt`, `entry_point`, `test`. Source: Chen et al., arXiv 2107.03374.
- Plain text: paragraphs with empty lines between them.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from borrador.bench.files import as_name
from borrador.bench.score.program import Problem
from borrador.errors import UsageError

CODE_INSTRUCTION: Final = "Complete this Python function. Answer with the whole function in one code block."
_MAX_BYTES = 64 * 2**20
_GZIP_MAGIC = b"\x1f\x8b"
_SHOWN_KEYS = 8
_HINT = 'Each line looks like {"id": "qa-1", "task": "qa", "turns": ["..."]}, or as in Spec-Bench or HumanEval.'


@dataclass(frozen=True, slots=True)
class BenchPrompt:
    """One question, asked as the user's first message.

    Attributes:
        id: unique in its file.
        task: the group that it is counted in.
        text: what is asked.
        check: how to test the code that answers it; None where there are no tests.
    """

    id: str
    task: str
    text: str
    check: Problem | None = None


def read_prompts(path: Path) -> tuple[BenchPrompt, ...]:
    """All prompts of a file, in its order.

    Raises:
        UsageError: the file cannot be read, is larger than 64 MiB, or is of another shape; then the error names the
            line and the keys that it has.
    """
    text = _read_text(path)
    if _is_json(text):
        lines = ((number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip())
        return tuple(_parse_line(path, number, line) for number, line in lines)
    return tuple(_paragraphs(path, text))


def ask_for_code(beginning: str) -> str:
    """The question that asks for the whole of a function whose beginning is given."""
    return f"{CODE_INSTRUCTION}\n\n```python\n{beginning.rstrip()}\n```"


def _read_text(path: Path) -> str:
    content = _read_bytes(path)
    if content.startswith(_GZIP_MAGIC):
        content = _decompress(path, content)
    if len(content) > _MAX_BYTES:
        raise UsageError(f"a prompt file may hold at most {_MAX_BYTES} bytes, {path} holds more", "Take some of them.")
    try:
        return content.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        message = f"the prompt file must be UTF-8, {path} is not at byte {error.start}"
        raise UsageError(message, "Save it as UTF-8.") from error


def _read_bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not a file name"
        raise UsageError(f"the prompt file {path!s:.80} cannot be read: {reason}", "Check --prompts.") from error


def _decompress(path: Path, content: bytes) -> bytes:
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
            return file.read(_MAX_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise UsageError(f"the prompt file {path} is damaged: {error}", "Fetch or compress it again.") from error


def _is_json(text: str) -> bool:
    """Whether these are JSON Lines, right or wrong; a text may begin with a bracket too."""
    first = text.lstrip()[:1]
    if first != "[":
        return first == "{"
    try:
        return isinstance(json.loads(text.lstrip().split("\n", 1)[0]), list)
    except RecursionError:
        return True
    except ValueError:
        return False


def _parse_line(path: Path, number: int, line: str) -> BenchPrompt:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _line_error(path, number, "is not JSON") from error
    if not isinstance(entry, dict):
        raise _line_error(path, number, "is not a JSON object")
    text = _question(entry)
    if text is None or not text.strip():
        keys = ", ".join(list(entry)[:_SHOWN_KEYS]) or "none"
        raise _line_error(path, number, f"has neither turns nor prompt with text in it; its keys are {keys:.200}")
    return _humaneval(entry, text) if "task_id" in entry else _question_prompt(entry, number, text)


def _question_prompt(entry: dict[str, Any], number: int, text: str) -> BenchPrompt:
    name, task = entry.get("id", entry.get("question_id", number)), entry.get("task", entry.get("category", "all"))
    return BenchPrompt(id=as_name(str(name)), task=as_name(str(task)), text=text)


def _humaneval(entry: dict[str, Any], beginning: str) -> BenchPrompt:
    name, test, entry_point = as_name(str(entry["task_id"])), entry.get("test"), entry.get("entry_point")
    check = None
    if isinstance(test, str) and isinstance(entry_point, str):
        check = Problem(id=name, prompt=beginning, test=test, entry_point=entry_point)
    task = name.partition("/")[0].lower() if "/" in name else "code"
    return BenchPrompt(id=name, task=task, text=ask_for_code(beginning), check=check)


def _question(entry: dict[str, Any]) -> str | None:
    turns = entry.get("turns")
    question = turns[0] if isinstance(turns, list) and turns else entry.get("prompt")
    return question if isinstance(question, str) else None


def _paragraphs(path: Path, text: str) -> Iterator[BenchPrompt]:
    name = as_name(Path(path.name.removesuffix(".gz")).stem)
    paragraphs = (part.strip() for part in re.split(r"\n[ \t\r]*\n", text))
    for number, paragraph in enumerate((part for part in paragraphs if part), 1):
        yield BenchPrompt(id=f"{name}-{number}", task=name, text=paragraph)


def _line_error(path: Path, number: int, reason: str) -> UsageError:
    return UsageError(f"line {number} of {path} {reason}", _HINT)
