"""What a rule says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from borrador.doctor.facts import Facts


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """One sentence about what is slow, or stands in the way, and one about what to do.

    Attributes:
        topic: for programs, such as `huge-pages`.
        finding: what was seen.
        remedy: what helps.
    """

    topic: str
    finding: str
    remedy: str


Rule: TypeAlias = Callable[[Facts], Advice | None]
