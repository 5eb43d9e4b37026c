"""How steps and a whole verification ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from borrador.verify.finding import Finding
from borrador.verify.rig import Rig


class Step(Protocol):
    """A part of a verification."""

    @property
    def name(self) -> str: ...

    def run(self, rig: Rig) -> None:
        """Do what is to be done with these models; called once for each number of threads."""
        ...

    def report(self) -> StepReport:
        """How it ended."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class StepReport:
    """How a step ended.

    Attributes:
        name: of the step.
        checked: what was compared, and how much of it.
        figures: the same as numbers.
        finding: what must not be; None where all is as it must be.
        remarks: what was left out or could not be told, and why.
        conclusive: False where an error would not have been noticed.
    """

    name: str
    checked: str
    figures: dict[str, Any]
    finding: Finding | None = None
    remarks: tuple[str, ...] = ()
    conclusive: bool = True

    @property
    def passed(self) -> bool:
        return self.finding is None and self.conclusive

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "passed": self.passed,
            "conclusive": self.conclusive,
            **self.figures,
            "finding": None if self.finding is None else self.finding.as_json(),
            "remarks": list(self.remarks),
        }


@dataclass(frozen=True, slots=True)
class Report:
    """How a verification ended.

    Attributes:
        threads: the numbers of threads, the chosen one first.
        steps: in order; all of them were taken, whatever they found.
    """

    threads: Sequence[int]
    steps: Sequence[StepReport]

    @property
    def passed(self) -> bool:
        return all(step.passed for step in self.steps)

    @property
    def failed(self) -> StepReport | None:
        """The first step that found something."""
        return next((step for step in self.steps if step.finding is not None), None)

    def as_json(self) -> dict[str, Any]:
        return {
            "passed": self.passed,
            "threads": list(self.threads),
            "steps": [step.as_json() for step in self.steps],
        }
