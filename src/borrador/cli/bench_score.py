"""`borrador bench --score`: whether the code in the answers passes its tests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.table import Table

from borrador.bench.prompts import BenchPrompt
from borrador.bench.runs import Pair
from borrador.bench.score.program import Problem
from borrador.bench.score.sandbox import describe_isolation, require_sandbox
from borrador.bench.score.scoring import Attempt, Score, score
from borrador.cli.output import error_console, make_table
from borrador.cli.progress import StepProgress
from borrador.errors import UsageError

_DETAIL_CHARACTERS = 80


def require_problems(prompts: Iterable[BenchPrompt], path: Path) -> None:
    """Refuse what could not be scored, before anything is measured.

    Raises:
        UsageError: a prompt has no tests.
        BorradorError: this system has no sandbox.
    """
    require_sandbox()
    untested = [prompt.id for prompt in prompts if prompt.check is None]
    if untested:
        raise UsageError(
            f"--score needs prompts with tests, and {untested[0]} of {path} has none",
            "Give lines with task_id, prompt, test and entry_point as in HumanEval, or leave --prompts out.",
        )


def score_pairs(pairs: Sequence[Pair], prompts: Iterable[BenchPrompt], *, quiet: bool) -> Score:
    """Run the tests of each prompt on both of its answers, the first ones where there are several."""
    problems = {prompt.id: prompt.check for prompt in prompts}
    first = [pair for pair in pairs if pair.repeat == 0]
    attempts = [_attempt(pair, problem) for pair in first if (problem := problems[pair.prompt]) is not None]
    with StepProgress(error_console(), len(attempts), quiet=quiet) as progress:
        scored = []
        for each in score(attempts):
            scored.append(each)
            progress.step(f"tests of {each.id}")
    return Score(scored=tuple(scored), isolation=describe_isolation())


def tabulate_score(found: Score) -> Table:
    """A row per problem."""
    table = make_table(left=("problem", "plain", "speculative"), last="what went wrong")
    for each in found.scored:
        table.add_row(each.id, each.plain.outcome, each.speculative.outcome, _shorten(each.explanation))
    return table


def describe_score(found: Score) -> tuple[str, str]:
    """What the table adds up to, and what the programs were run in."""
    plain, speculative = (f"{passed} of {found.problems}" for passed in (found.plain_passed, found.speculative_passed))
    return f"pass@1: {plain} written plainly, {speculative} with speculation", f"sandbox: {found.isolation}"


def _attempt(pair: Pair, problem: Problem) -> Attempt:
    cut = "length" in (pair.plain.finish_reason, pair.speculative.finish_reason)
    return Attempt(problem=problem, plain=pair.plain.text, speculative=pair.speculative.text, cut=cut)


def _shorten(detail: str) -> str:
    return detail if len(detail) <= _DETAIL_CHARACTERS else detail[: _DETAIL_CHARACTERS - 3] + "..."
