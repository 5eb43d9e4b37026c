"""Score answers with and without speculation, pass@1: the share of problems whose one answer passes its tests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from borrador.bench.score.program import Problem, write_program
from borrador.bench.score.sandbox import run_tests
from borrador.bench.score.verdict import Verdict

_NO_CODE = Verdict("failed", "no code in the answer")
# Runs a program, its tests and the name of the function they test.
Tester = Callable[[str, str, str], Verdict]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A problem and its answers, written plainly and with speculation; `cut` if either ran out of tokens."""

    problem: Problem
    plain: str
    speculative: str
    cut: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """What became of both answers to the problem of that id."""

    id: str
    plain: Verdict
    speculative: Verdict
    cut: bool = False

    @property
    def explanation(self) -> str:
        """What went wrong; empty where both passed."""
        details = [verdict.detail for verdict in (self.plain, self.speculative) if verdict.detail]
        return "; ".join(dict.fromkeys([*details, *(["an answer ran out of tokens"] if details and self.cut else [])]))

    def as_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "plain": self.plain.outcome,
            "plain_detail": self.plain.detail,
            "speculative": self.speculative.outcome,
            "speculative_detail": self.speculative.detail,
            "cut": self.cut,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """All problems, in their order, and what held their programs back."""

    scored: tuple[Scored, ...]
    isolation: str

    @property
    def problems(self) -> int:
        return len(self.scored)

    @property
    def plain_passed(self) -> int:
        return sum(scored.plain.passed for scored in self.scored)

    @property
    def speculative_passed(self) -> int:
        return sum(scored.speculative.passed for scored in self.scored)

    def as_json(self) -> dict[str, Any]:
        return {
            "problems": self.problems,
            "plain_pass_at_1": round(self.plain_passed / self.problems, 4) if self.problems else None,
            "speculative_pass_at_1": round(self.speculative_passed / self.problems, 4) if self.problems else None,
            "isolation": self.isolation,
            "per_problem": [scored.as_json() for scored in self.scored],
        }


def score(attempts: Iterable[Attempt], tester: Tester = run_tests) -> Iterator[Scored]:
    """The verdicts of each attempt in turn.

    A program is run once, however often it was written: equal answers are equal, even where a program draws lots.
    """
    known: dict[tuple[Problem, str], Verdict] = {}

    def judge(problem: Problem, answer: str) -> Verdict:
        program = write_program(problem, answer)
        if program is None:
            return _NO_CODE
        if (problem, program) not in known:
            known[problem, program] = tester(program, problem.test, problem.entry_point)
        return known[problem, program]

    for attempt in attempts:
        plain, speculative = (judge(attempt.problem, answer) for answer in (attempt.plain, attempt.speculative))
        yield Scored(id=attempt.problem.id, plain=plain, speculative=speculative, cut=attempt.cut)
