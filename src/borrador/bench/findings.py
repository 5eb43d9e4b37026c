"""What a plan found: every way of drafting with its forecast, and what of it was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from borrador.bench.lineup import Way
from borrador.bench.prompts import BenchPrompt
from borrador.bench.trace import Tally, Trace, tally

_AS_GOOD = 0.98  # of the best speed: what differs by less may be noise


@dataclass(frozen=True, slots=True)
class Measured:
    """The answers to one prompt, by plain decoding and in every way."""

    prompt: BenchPrompt
    plain: Trace
    answers: Mapping[Way, Trace]

    @property
    def identical(self) -> bool:
        return self.differing is None

    @property
    def differing(self) -> Way | None:
        """The first way whose tokens are not plain decoding's."""
        return next((way for way, answer in self.answers.items() if answer.token_ids != self.plain.token_ids), None)

    def speedup(self, way: Way) -> float:
        return tally(self.answers[way], self.plain).speedup


@dataclass(frozen=True, slots=True)
class Line:
    """A way of drafting with one draft length.

    Attributes:
        draft_tokens: None where costs choose.
        predicted: from the known prompts.
        measured: on the unseen prompts; None where it was not tried on them.
    """

    way: Way
    draft_tokens: int | None
    predicted: Tally
    measured: Tally | None = None

    @property
    def error(self) -> float | None:
        """Predicted / measured speed-up - 1."""
        if self.measured is None or not self.measured.speedup:
            return None
        return self.predicted.speedup / self.measured.speedup - 1.0

    def as_json(self) -> dict[str, Any]:
        return {
            "draft": list(self.way.drafters),
            "draft_tokens": self.draft_tokens,
            "tokens_per_pass": round(self.predicted.tokens_per_pass, 4),
            "predicted": round(self.predicted.speedup, 4),
            "measured": None if self.measured is None else round(self.measured.speedup, 4),
            "error": None if self.error is None else round(self.error, 4),
        }


@dataclass(frozen=True, slots=True)
class DrafterFacts:
    """What was measured of a drafter alone, at the longest length.

    Attributes:
        acceptance: accepted / tested draft tokens; None where none was tested.
        by_position: the same at each place of a draft, the first one first.
        cost_ratio: c, one drafted token / one plain pass.
    """

    acceptance: float | None
    by_position: tuple[float, ...]
    cost_ratio: float

    def as_json(self) -> dict[str, Any]:
        return {
            "acceptance": None if self.acceptance is None else round(self.acceptance, 4),
            "acceptance_by_position": [round(share, 4) for share in self.by_position],
            "cost_ratio": round(self.cost_ratio, 5),
        }


@dataclass(frozen=True, slots=True)
class TaskFacts:
    """The recommended way on the prompts of one task.

    Attributes:
        acceptance: of the drafts verified there; None where none was.
        measured: on unseen prompts; None where the task has none.
    """

    acceptance: float | None
    predicted: Tally
    measured: Tally | None

    def as_json(self) -> dict[str, Any]:
        return {
            "acceptance": None if self.acceptance is None else round(self.acceptance, 4),
            "predicted": round(self.predicted.speedup, 4),
            "measured": None if self.measured is None else round(self.measured.speedup, 4),
        }


@dataclass(frozen=True, slots=True)
class Plan:
    """A whole plan.

    Attributes:
        row_costs: T(m) / T(1) by rows.
        pass_s: T(1).
        drafters: by name.
        lines: every drafter at every length, then the choices by costs.
        recommended: the one to use; None is plain decoding.
        tasks: by name, in the order in which they appear.
        answers: to all prompts, for what must be identical.
    """

    row_costs: Mapping[int, float]
    pass_s: float
    drafters: Mapping[str, DrafterFacts]
    lines: Sequence[Line]
    recommended: Line | None
    tasks: Mapping[str, TaskFacts]
    answers: Sequence[Measured]

    @property
    def identical(self) -> int:
        return sum(answers.identical for answers in self.answers)

    @property
    def speedup(self) -> float:
        """Measured, of what is recommended."""
        if self.recommended is None or self.recommended.measured is None:
            return 1.0
        return self.recommended.measured.speedup

    def as_json(self) -> dict[str, Any]:
        recommended = None if self.recommended is None else self.recommended.as_json()
        return {
            "pass_ms": round(self.pass_s * 1e3, 4),
            "row_costs": {str(rows): round(cost, 4) for rows, cost in self.row_costs.items()},
            "drafters": {name: facts.as_json() for name, facts in self.drafters.items()},
            "ways": [line.as_json() for line in self.lines],
            "per_task": {task: facts.as_json() for task, facts in self.tasks.items()},
            "recommended": recommended,
            "prompts": len(self.answers),
            "identical": self.identical,
        }


def recommend(lines: Sequence[Line]) -> Line | None:
    """What to use: of all that was measured to be about as fast as the fastest, the choice by costs with the fewest
    drafters, since it does not lose on other texts as a fixed length may, and only then a drafter alone. None is plain
    decoding, where drafts gain next to nothing.
    """
    tried = [(line, line.measured.speedup) for line in lines if line.measured is not None]
    best = max((speedup for _, speedup in tried), default=0.0)
    if _AS_GOOD * best <= 1.0:
        return None
    good = [line for line, speedup in tried if speedup >= _AS_GOOD * best]
    return min(good, key=lambda line: (not line.way.by_costs, len(line.way.drafters)))
