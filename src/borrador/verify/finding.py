"""What a step found: the first place where something differs, in words and as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from borrador.verify.statistics import rounded


class Finding(Protocol):
    """Something that must not be."""

    def describe(self) -> str:
        """One sentence's worth, without its beginning: where, and what was found instead of what."""
        ...

    def as_json(self) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True)
class TokenLogit:
    """A token and its logit in the pass that it was chosen from.

    Where no token was chosen, `token` is None and `text` says what was there instead.
    """

    token: int | None
    text: str
    logit: float | None

    def describe(self) -> str:
        if self.token is None:
            return self.text
        logit = "none" if self.logit is None else f"{self.logit:.9g}"
        return f"{self.token} {json.dumps(self.text, ensure_ascii=False)} (logit {logit})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergence:
    """The first place where two decodings, or two ways to compute logits, differ.

    Attributes:
        where: prompt, parameters, drafter and threads.
        position: tokens before this one, prompt included.
        expected: by plain decoding.
        found: by the other way. Where the token is the same, its logit or another of the row's differs.
    """

    where: str
    position: int
    expected: TokenLogit
    found: TokenLogit

    def describe(self) -> str:
        return (
            f"{self.where}: position {self.position} is {self.expected.describe()} in plain decoding, "
            f"and here {self.found.describe()}{self._remark()}"
        )

    def as_json(self) -> dict[str, Any]:
        return {"kind": "divergence", **asdict(self)}

    def _remark(self) -> str:
        return ", with other logits in the same row" if self.expected == self.found else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LawMismatch:
    """Draws that do not follow the target's distribution.

    Attributes:
        where: prompt, parameters, drafter and rule.
        text: the tokens drawn too often or too seldom.
        drawn: how often they were drawn.
        expected: how often the target's distribution expects them.
        draws: of how many.
        p_value: of the chi-square test over all outcomes, corrected for the number of tests.
    """

    where: str
    text: str
    drawn: int
    expected: float
    draws: int
    p_value: float

    def describe(self) -> str:
        return (
            f"{self.where}: {json.dumps(self.text, ensure_ascii=False)} was drawn {self.drawn} times of {self.draws}, "
            f"expected are {self.expected:.1f} (p {rounded(self.p_value)} over all outcomes)"
        )

    def as_json(self) -> dict[str, Any]:
        return {"kind": "law", **asdict(self)}
