"""Benchmark prompts: JSON Lines with `id`, `task` and `turns` (the first turn is asked) or `prompt`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from borrador.errors import ContextLengthError, UsageError

_MAX_BYTES = 64 * 2**20
DEFAULT_PROMPTS = Path(__file__).parent / "prompts.jsonl"


@dataclass(frozen=True, slots=True)
class BenchPrompt:
    """One question, asked as the user's first message."""

    id: str
    task: str
    text: str


def load_prompts(path: Path = DEFAULT_PROMPTS, per_task: int | None = None) -> tuple[BenchPrompt, ...]:
    """Read a prompt file in its order, keeping at most `per_task` prompts of each task.

    Raises:
        UsageError: the file cannot be read, holds no prompt, is larger than 64 MiB, repeats an id, or a line is
            not a prompt.
    """
    prompts = tuple(_parse_line(path, number, line) for number, line in enumerate(_read_lines(path), 1) if line.strip())
    if not prompts:
        raise UsageError(f"the prompt file must hold at least one prompt, {path} holds none", "Give another --prompts.")
    repeated = [name for name, count in Counter(prompt.id for prompt in prompts).items() if count > 1]
    if repeated:
        raise UsageError(f"prompt ids must be unique, {path} repeats {repeated[0]!r}", "Rename or remove one of them.")
    return prompts if per_task is None else tuple(_first_of_each_task(prompts, per_task))


def require_room(prompts: Iterable[BenchPrompt], tokens: Callable[[BenchPrompt], int], context_length: int) -> None:
    """Refuse a prompt that is too long before anything is measured, not when its turn comes.

    Args:
        prompts: all that will be asked.
        tokens: how long a prompt is.
        context_length: which it must stay below.

    Raises:
        ContextLengthError: one is too long.
    """
    for prompt in prompts:
        if (length := tokens(prompt)) >= context_length:
            raise ContextLengthError(
                f"a prompt must be shorter than the context of {context_length} tokens, {prompt.id} has {length}",
                "Choose a larger --context, or leave the prompt out.",
            )


def _read_lines(path: Path) -> list[str]:
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no file name"
        raise UsageError(f"the prompt file {path!s:.80} cannot be read: {reason}", "Check --prompts.") from error
    if len(content) > _MAX_BYTES:
        raise UsageError(f"a prompt file may hold at most {_MAX_BYTES} bytes, {path} holds more", "Take some of them.")
    try:
        return content.decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        message = f"the prompt file must be UTF-8, {path} is not at byte {error.start}"
        raise UsageError(message, "Save it as UTF-8 JSON Lines.") from error


def _parse_line(path: Path, number: int, line: str) -> BenchPrompt:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _line_error(path, number, "is not JSON") from error
    if not isinstance(entry, dict):
        raise _line_error(path, number, "is not a JSON object")
    text = _question(entry)
    if text is None or not text.strip():
        raise _line_error(path, number, "has neither turns nor prompt with text in it")
    return BenchPrompt(id=str(entry.get("id", number)), task=str(entry.get("task", "all")), text=text)


def _question(entry: dict[str, Any]) -> str | None:
    turns = entry.get("turns")
    question = turns[0] if isinstance(turns, list) and turns else entry.get("prompt")
    return question if isinstance(question, str) else None


def _line_error(path: Path, number: int, reason: str) -> UsageError:
    hint = 'Each line looks like {"id": "qa-1", "task": "qa", "turns": ["..."]}.'
    return UsageError(f"line {number} of {path} {reason}", hint)


def _first_of_each_task(prompts: Iterable[BenchPrompt], per_task: int) -> Iterable[BenchPrompt]:
    taken: Counter[str] = Counter()
    for prompt in prompts:
        taken[prompt.task] += 1
        if taken[prompt.task] <= per_task:
            yield prompt
