"""Prompts to measure with, and how they are chosen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from borrador.bench.formats import BenchPrompt as BenchPrompt
from borrador.bench.formats import read_prompts
from borrador.errors import ContextLengthError, UsageError

# What drafters know when they meet a prompt; see `borrador.bench.record.Settings`.
Start = Literal["carried", "cold", "warm"]
DEFAULT_PROMPTS = Path(__file__).parent / "prompts.jsonl"
# Of HumanEval's shape, with tests.
OWN_PROBLEMS = Path(__file__).parent / "problems.jsonl"


def load_prompts(path: Path = DEFAULT_PROMPTS, per_task: int | None = None) -> tuple[BenchPrompt, ...]:
    """Read a prompt file in its order, keeping at most `per_task` prompts of each task. See `borrador.bench.formats`.

    Raises:
        UsageError: the file cannot be read, holds no prompt, is larger than 64 MiB, repeats an id, or a line is
            not a prompt.
    """
    prompts = read_prompts(path)
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


@dataclass(frozen=True, slots=True)
class Halves:
    """Prompts to learn from, and prompts that are not looked at before the measurement."""

    known: tuple[BenchPrompt, ...]
    unseen: tuple[BenchPrompt, ...]

    @classmethod
    def of(cls, prompts: Sequence[BenchPrompt], purpose: str = "a plan") -> Halves:
        """The prompts of each task in turn, so that both halves have about as many of it.

        Raises:
            UsageError: there is but one prompt, which is too few for this purpose.
        """
        if len(prompts) < 2:
            raise UsageError(
                f"{purpose} needs at least 2 prompts, one of them to check what the other tells, got {len(prompts)}",
                "Give a file with more prompts.",
            )
        halves: tuple[list[BenchPrompt], list[BenchPrompt]] = ([], [])
        for prompt in prompts:
            smaller = min(halves, key=lambda half: (sum(each.task == prompt.task for each in half), len(half)))
            smaller.append(prompt)
        return cls(*map(tuple, halves))


def _first_of_each_task(prompts: Iterable[BenchPrompt], per_task: int) -> Iterable[BenchPrompt]:
    taken: Counter[str] = Counter()
    for prompt in prompts:
        taken[prompt.task] += 1
        if taken[prompt.task] <= per_task:
            yield prompt
