"""Step 4: without a seed, speculative sampling follows the target's own distribution.

Answers of three tokens are drawn behind a real text, and their frequencies compared with the exact probabilities. Top-k
keeps so few tokens that every possible answer can be listed; the logits after each are read from the models once.
"""

from __future__ import annotations

import itertools
import math
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from borrador.draft.model import ModelDrafter
from borrador.sampling.noise import Noise
from borrador.sampling.rules import AcceptanceRule, BlockRule, RejectionRule
from borrador.sampling.shaping import Shaper
from borrador.types import Float32Array, SamplingParams
from borrador.verify.answers import AnswerStep
from borrador.verify.draws import CertainTokens, Drafting, DrawnChains, DrawnTrees, MakeRule, ResamplingRule, draw
from borrador.verify.extent import Extent
from borrador.verify.finding import LawMismatch
from borrador.verify.place import TOP_K, TREE_ROWS, Place, open_place
from borrador.verify.report import StepReport
from borrador.verify.rig import Rig
from borrador.verify.statistics import Fit, fit, holm, rounded
from borrador.verify.tables import Prefix

LEVEL = 1e-6  # a right rule is called wrong once in a million runs
SAMPLING: Sequence[Mapping[str, Any]] = ({"temperature": 1.0}, {"temperature": 0.7, "top_p": 0.9})


@dataclass(frozen=True, slots=True)
class Way:
    """A way to draw answers: drafts of a kind, judged by a rule."""

    name: str
    drafting: Drafting
    make_rule: MakeRule

    def broken(self) -> Way:
        """The same, but a refused token is replaced wrongly; see `ResamplingRule`."""

        def make_rule(shaper: Shaper, noise: Noise) -> AcceptanceRule[Float32Array]:
            return ResamplingRule(self.make_rule(shaper, noise), shaper, noise)

        return replace(self, name=f"{self.name}, with a wrong residual", make_rule=make_rule)


DRAWN = (
    Way("block verification of drawn chains", DrawnChains(), BlockRule),
    Way("rejection of drawn chains", DrawnChains(), RejectionRule),
    Way("rejection of drawn trees", DrawnTrees(2), RejectionRule),
)
CERTAIN = (
    Way("rejection of certain chains", CertainTokens(1), RejectionRule),
    Way("rejection of certain trees", CertainTokens(2), RejectionRule),
)
CONTROLS = (DRAWN[0].broken(), DRAWN[1].broken())


@dataclass(frozen=True, slots=True)
class LawTest:
    """The fit of the first tokens of the answers that were drawn in one way."""

    name: str
    tokens: int
    fit: Fit[Prefix]

    def as_json(self) -> dict[str, Any]:
        statistic = self.fit.statistic if math.isfinite(self.fit.statistic) else None
        return {
            "name": self.name,
            "tokens": self.tokens,
            "chi_square": statistic,
            "freedom": self.fit.freedom,
            "p_value": self.fit.p_value,
        }


class LawStep:
    """Draws answers in every way that ships, and in a wrong way, which the same tests must notice.

    Args:
        name: of the step.
        greedy: gives the texts to draw behind.
        extent: how much to do.
        break_residual: draw in the wrong way alone, so that the step fails.
    """

    def __init__(self, name: str, greedy: AnswerStep, extent: Extent, *, break_residual: bool = False) -> None:
        self.name = name
        self._greedy = greedy
        self._extent = extent
        self._break_residual = break_residual
        self._tests: list[LawTest] = []
        self._controls: list[LawTest] = []
        self._remarks: list[str] = []
        self._finding: LawMismatch | None = None

    def run(self, rig: Rig) -> None:
        """Once: only logits can depend on threads, and they are compared in another step."""
        if self._tests:
            return
        drafters = [drafter for drafter in rig.parts.drafters if isinstance(drafter, ModelDrafter)]
        others = [drafter.name for drafter in rig.parts.drafters if drafter not in drafters]
        self._remarks += _explain(self.name, [drafter.name for drafter in drafters], others)
        for number, (name, answer) in enumerate(list(self._greedy.plain.items())[: self._extent.places]):
            tokens = [*answer.prompt, *answer.tokens][: rig.parts.context_length - TREE_ROWS]
            params = SamplingParams(top_k=TOP_K, **SAMPLING[number % len(SAMPLING)])
            for index, drafter in enumerate(drafters or (None,)):
                place = open_place(rig, name, tokens, drafter, params)
                self._draw(place, DRAWN if index else (*DRAWN, *CERTAIN))
        self._finding = self._find(rig)

    def report(self) -> StepReport:
        noticed = self._noticed()
        smallest = min(_corrected(self._tests), default=1.0)
        return StepReport(
            name=self.name,
            checked=f"{len(self._tests)} tests with {self._extent.draws} draws of 1, 2 or 3 tokens, smallest p "
            f"{rounded(smallest)}; a wrong residual is noticed in {noticed} of {len(self._controls)}",
            figures={
                "draws": self._extent.draws,
                "level": LEVEL,
                "smallest_p": smallest,
                "tests": [test.as_json() for test in self._tests],
                "controls": [test.as_json() for test in self._controls],
                "controls_noticed": noticed,
            },
            finding=self._finding,
            remarks=tuple(self._remarks),
            conclusive=noticed > 0,
        )

    def _draw(self, place: Place, ways: Sequence[Way]) -> None:
        for way in ways:
            self._tests += self._test(place, way.broken() if self._break_residual else way)
        for way in CONTROLS:
            self._controls += self._test(place, way)

    def _test(self, place: Place, way: Way) -> Iterator[LawTest]:
        name = f"{place.name}, {way.name}"
        seed = zlib.crc32(name.encode())
        answers = draw(place.target, place.draft, way.drafting, place.shaper, way.make_rule, self._extent.draws, seed)
        for length, law in enumerate(place.laws, 1):
            counts: Counter[Prefix] = Counter()
            for answer, count in answers.items():
                counts[tuple(int(place.ids[number]) for number in answer[:length])] += count
            yield LawTest(name, length, fit(counts, law))

    def _noticed(self) -> int:
        return sum(p_value < LEVEL for p_value in _corrected(self._controls))

    def _find(self, rig: Rig) -> LawMismatch | None:
        """The test that fits worst, if that cannot be chance."""
        p_value, index = min(zip(_corrected(self._tests), itertools.count()))
        if p_value >= LEVEL:
            return None
        test = self._tests[index]
        tokens, drawn, expected = test.fit.worst
        return LawMismatch(
            where=test.name,
            text="".join(rig.token_text(token) for token in tokens),
            drawn=drawn,
            expected=expected,
            draws=test.fit.draws,
            p_value=p_value,
        )


def _corrected(tests: Sequence[LawTest]) -> Sequence[float]:
    return holm([test.fit.p_value for test in tests])


def _explain(step: str, drawing: Sequence[str], others: Sequence[str]) -> Iterator[str]:
    """What stands for what."""
    if not drawing:
        yield f"{step}: no draft model to draw from; the model's own logits, disturbed, stand in for one's"
    if others:
        draw, them = ("draws", "it") if len(others) == 1 else ("draw", "them")
        yield f"{step}: {', '.join(others)} {draw} nothing; rejection of certain chains and trees stands for {them}"
