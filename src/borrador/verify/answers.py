"""Steps 1 and 2: greedy and seeded answers are plain decoding's with any drafter, draft length and thread count."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from borrador.bench.prompts import BenchPrompt
from borrador.types import SamplingParams
from borrador.verify.extent import Extent
from borrador.verify.finding import Divergence, TokenLogit
from borrador.verify.report import StepReport
from borrador.verify.rig import REHEARSED_CHAIN, REHEARSED_TREE, Rig, Setup, Written
from borrador.verify.watch import Choice

_PENALTIES = {"repetition_penalty": 1.1, "presence_penalty": 0.2, "frequency_penalty": 0.2}
SHAPING: Mapping[str, Mapping[str, Any]] = {
    "": {},
    ", top-p 0.9": {"top_p": 0.9},
    ", penalties": _PENALTIES,
    ", top-p 0.9, penalties": {"top_p": 0.9, **_PENALTIES},
}
TEMPERATURES = (0.7, 1.0)
_TREE_TOKENS = 15


@dataclass(frozen=True, slots=True)
class Case:
    """An answer that must come out the same.

    Attributes:
        name: of prompt and parameters, for people.
        prompt: the user's first message.
        params: greedy, or with a seed.
    """

    name: str
    prompt: str
    params: SamplingParams


def greedy_cases(prompts: Sequence[BenchPrompt], extent: Extent) -> Sequence[Case]:
    """Every prompt, answered greedily."""
    params = SamplingParams(max_tokens=extent.max_tokens)
    return [Case(prompt.id, prompt.text, params) for prompt in prompts]


def seeded_cases(prompts: Sequence[BenchPrompt], extent: Extent) -> Sequence[Case]:
    """Every prompt, the last one first, and every kind of sampling in turn, each with a seed of its own."""
    kinds = [(temperature, *shaping) for shaping in SHAPING.items() for temperature in TEMPERATURES]
    cases = []
    for seed in range(max(len(prompts), len(kinds))):
        prompt, (temperature, words, shaping) = prompts[-1 - seed % len(prompts)], kinds[seed % len(kinds)]
        params = SamplingParams(temperature=temperature, seed=seed, max_tokens=extent.max_tokens, **shaping)
        cases.append(Case(f"{prompt.id} at temperature {temperature}{words}, seed {seed}", prompt.text, params))
    return cases


class AnswerStep:
    """Writes every case in several ways, and compares each answer with plain decoding's on the first number of threads.

    Args:
        name: of the step.
        cases: at least one, with a name each.
        extent: how much to do.

    Attributes:
        plain: what plain decoding wrote, by case.
    """

    def __init__(self, name: str, cases: Sequence[Case], extent: Extent) -> None:
        self.name = name
        self.plain: dict[str, Written] = {}
        self._cases = cases
        self._extent = extent
        self._finding: Divergence | None = None
        self._tallies: dict[str, _Tally] = {}

    def run(self, rig: Rig) -> None:
        for case, setup in self._pairs(rig):
            if self._finding is not None:
                return
            if case.name not in self.plain:
                self.plain[case.name] = rig.write(case.prompt, case.params)
            plain = self.plain[case.name]
            other = rig.write(case.prompt, case.params, setup, plain)
            how = "plain decoding" if setup is None else setup.describe()
            self._finding = first_divergence(plain, other, f"{case.name}, {how}, threads {rig.threads}", rig)
            who = "none" if setup is None else setup.drafter or "all drafters"
            self._tallies.setdefault(who, _Tally()).add(other)

    def report(self) -> StepReport:
        tallies = self._tallies
        answers, tokens = (sum(getattr(tally, name) for tally in tallies.values()) for name in ("answers", "tokens"))
        idle = [name for name, tally in tallies.items() if name != "none" and not tally.drafted]
        return StepReport(
            name=self.name,
            checked=f"{answers} answers, {tokens} tokens and their logits; drafts accepted: {_list(tallies)}",
            figures={
                "answers": answers,
                "tokens": tokens,
                "drafters": {name: asdict(tally) for name, tally in tallies.items()},
            },
            finding=self._finding,
            remarks=tuple(f"{self.name}: {name} never proposed anything, and so was not checked" for name in idle),
        )

    def _pairs(self, rig: Rig) -> Iterator[tuple[Case, Setup | None]]:
        """What to write: first everything, and with other numbers of threads some of it, plainly and with drafts."""
        setups = _setups(rig, self._extent.draft_lengths)
        if not self.plain:
            yield from rotate(self._cases, setups, self._extent.ways)
            return
        known = [case for case in self._cases if case.name in self.plain][: self._extent.answers_on_other_threads]
        for case, setup in zip(known, itertools.cycle(reversed(setups)), strict=False):
            yield case, None
            yield case, setup


@dataclass(slots=True)
class _Tally:
    """What was written with a drafter."""

    answers: int = 0
    tokens: int = 0
    drafted: int = 0
    accepted: int = 0

    def add(self, written: Written) -> None:
        self.answers += 1
        self.tokens += len(written.tokens)
        self.drafted += written.stats.draft_tokens_proposed
        self.accepted += written.stats.draft_tokens_accepted


def first_divergence(plain: Written, other: Written, where: str, rig: Rig) -> Divergence | None:
    """The first token that differs, or that was chosen from other logits; None where there is none."""
    for index in range(max(len(plain.choices), len(other.choices))):
        left, right = _at(plain.choices, index), _at(other.choices, index)
        if left != right:
            return Divergence(
                where=where,
                position=len(plain.prompt) + index,
                expected=_token_logit(left, rig),
                found=_token_logit(right, rig),
            )
    if (plain.text, plain.finish_reason) != (other.text, other.finish_reason):
        position = len(plain.prompt) + len(plain.choices)
        return Divergence(where=where, position=position, expected=_ending(plain), found=_ending(other))
    return None


def rotate(cases: Sequence[Case], setups: Sequence[Setup], ways: int) -> Iterator[tuple[Case, Setup]]:
    """Each case with `ways` setups, or more where that would leave a setup out, or fewer where there are no more."""
    ways = min(max(ways, -(-len(setups) // len(cases))), len(setups))
    turns = itertools.cycle(setups)
    for case in cases:
        for setup in itertools.islice(turns, ways):
            yield case, setup


def _setups(rig: Rig, lengths: Sequence[int]) -> Sequence[Setup]:
    drafters = [drafter.name for drafter in rig.parts.drafters]
    return [
        *(Setup(None, None) for _ in drafters[:1]),
        *(Setup(name, length) for name in drafters for length in lengths),
        Setup(REHEARSED_CHAIN, max(lengths)),
        Setup(REHEARSED_TREE, _TREE_TOKENS),
    ]


def _list(tallies: Mapping[str, _Tally]) -> str:
    drafters = {name: tally for name, tally in tallies.items() if name != "none"}
    return ", ".join(f"{name} {tally.accepted}/{tally.drafted}" for name, tally in drafters.items())


def _at(choices: Sequence[Choice], index: int) -> Choice | None:
    return choices[index] if index < len(choices) else None


def _token_logit(choice: Choice | None, rig: Rig) -> TokenLogit:
    if choice is None:
        return TokenLogit(None, "nothing", None)
    logit = None if math.isnan(choice.logit) else choice.logit
    return TokenLogit(choice.token, rig.token_text(choice.token), logit)


def _ending(written: Written) -> TokenLogit:
    return TokenLogit(None, f"the end ({written.finish_reason}) of {written.text[-40:]!r}", None)
