"""What became of a program and its tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Outcome = Literal["passed", "failed", "error", "timeout", "out of memory"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """One program, tested.

    Attributes:
        outcome: `failed` where a test did not hold or there was no code, `error` where anything else was raised or the
            program ended before its tests did.
        detail: the error's name and message, or what else was the matter; empty where it passed.
    """

    outcome: Outcome
    detail: str = ""

    @property
    def passed(self) -> bool:
        return self.outcome == "passed"
