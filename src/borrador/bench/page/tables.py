"""Tables of the page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from borrador.bench.page.numbers import Number, Places, Spread
from borrador.bench.record import Record
from borrador.bench.runs import Run
from borrador.bench.score.scoring import Score
from borrador.bench.statistics import median_of_known
from borrador.bench.summary import by_prompt, decode_speed, speedup_of

Cell = str | Number | Spread
_WORST = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Columns and rows. The first cell of a row is its name; `last_is_total` sets the last row apart."""

    head: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    last_is_total: bool = False

    def holds_text(self, column: int) -> bool:
        """Whether the column is one of words, not of numbers."""
        return any(isinstance(row[column], str) for row in self.rows)


def tabulate_tasks(record: Record, places: Places) -> Table:
    """A row per task and one for all of them."""
    head = (
        "Task",
        "Prompts",
        "Plain tok/s",
        "Speculative tok/s",
        "Speed-up",
        "Median (95 % interval)",
        "End to end",
        "Tokens per pass",
        "Accepted",
        "Identical",
    )
    tasks = [_task_row(task, places, "summary", "per_task", task) for task in record.summary.per_task]
    return Table(head=head, rows=[*tasks, _task_row("all", places, "summary", "total")], last_is_total=True)


def _task_row(name: str, places: Places, *steps: str) -> list[Cell]:
    decode = (*steps, "decode")
    return [
        name,
        places.number("count", *steps, "prompts"),
        places.number("tokens_per_second", *decode, "plain_tok_s"),
        places.number("tokens_per_second", *decode, "spec_tok_s"),
        places.number("times", *decode, "speedup"),
        places.spread("times", *decode, "paired"),
        places.number("times", *steps, "end_to_end", "speedup"),
        places.number("tokens", *steps, "tokens_per_pass"),
        places.number("share", *steps, "acceptance"),
        places.number("count", *steps, "identical"),
    ]


def tabulate_score(score: Score) -> Table:
    """What became of the code in the answers."""
    rows: list[list[Cell]] = [
        [each.id, each.plain.outcome, each.speculative.outcome, each.explanation] for each in score.scored
    ]
    return Table(head=("Problem", "Plain", "Speculative", "What went wrong"), rows=rows)


def tabulate_worst(record: Record) -> Table:
    """The prompts that speculation served least."""
    found = [
        (speedup, prompt, members)
        for prompt, members in by_prompt(record.pairs).items()
        if (speedup := speedup_of(members)) is not None
    ]
    worst = sorted(found, key=lambda each: each[0])[:_WORST]
    rows: list[list[Cell]] = [
        [
            prompt,
            members[0].task,
            Number(speedup, "times"),
            _median_speed(pair.plain for pair in members),
            _median_speed(pair.speculative for pair in members),
            Number(members[0].speculative.tokens, "count"),
        ]
        for speedup, prompt, members in worst
    ]
    head = ("Prompt", "Task", "Speed-up", "Plain tok/s", "Speculative tok/s", "Tokens")
    return Table(head=head, rows=rows)


def _median_speed(runs: Iterable[Run]) -> Number:
    """Of the repeats of a prompt."""
    return Number(median_of_known(map(decode_speed, runs)), "tokens_per_second")
