"""Predicted beside measured: what docs/papers.md shows, as numbers."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from benchmarks.papers.results import DRAFT, PLAIN, TARGET, Answer, Probe, Results

from borrador.bench.theory import (
    Loop,
    best_gamma,
    expected_tokens,
    expected_tokens_by_position,
    operations_factor,
    walltime_factor,
)

LONGEST = 32  # that a best draft length is looked for


class Case(NamedTuple):
    """Answers with one draft at one temperature, in one part of the measurement."""

    part: str
    draft: str
    temperature: float


CHAINS = (Case("chain", DRAFT, 0.0), Case("chain", DRAFT, 1.0))


@dataclass(frozen=True, slots=True)
class Costs:
    """What was timed by itself, in passes over one row.

    Attributes:
        pass_ratios: T(1), T(2), ... / T(1).
        c: a draft token.
        plain_beside: what a plain round takes beside its pass.
    """

    pass_ratios: Sequence[float]
    c: float
    plain_beside: float

    def pass_ratio(self, rows: int) -> float:
        """T(rows) / T(1); beyond what was timed it rises as between its last two sizes but one."""
        known = self.pass_ratios
        if rows <= len(known):
            return known[rows - 1]
        return known[-1] + (rows - len(known)) * (known[-1] - known[-3]) / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One draft length.

    Attributes:
        alpha: accepted / tested.
        tokens: of a pass, by equation 1 with this α, by the acceptance at each place of the longest drafts, measured.
        pass_ratio: T(γ + 1) / T(1).
        factor: of walltime, by theorem 3.8, with T(m) and what a round takes beside, measured.
        by_prompt: the measured factors of single prompts that plain decoding took rounds for.
        loop: measured.
        operations: factor of arithmetic, by theorem 3.11 and measured.
    """

    gamma: int
    alpha: float
    tokens: tuple[float, float, float]
    pass_ratio: float
    factor: tuple[float, float, float]
    by_prompt: tuple[float, ...]
    loop: Loop
    operations: tuple[float, float]

    @property
    def error(self) -> float:
        """Of the prediction with T(m), as a share of what was measured."""
        return self.factor[1] / self.factor[2] - 1.0


def lines(results: Results, case: Case) -> list[Line]:
    """All draft lengths of a case, the shortest first."""
    known, plain = costs(results, case), answers_of(results, case._replace(draft=PLAIN))
    by_gamma: dict[int, list[Answer]] = {}
    for answer in answers_of(results, case):
        by_gamma.setdefault(answer.gamma, []).append(answer)
    places = acceptance_by_place(by_gamma[max(by_gamma)])
    ops = operations_ratio(results, case.draft)
    return [_line(gamma, by_gamma[gamma], plain, known, places[:gamma], ops) for gamma in sorted(by_gamma)]


def _line(
    gamma: int, answers: Sequence[Answer], plainly: Sequence[Answer], known: Costs, places: Sequence[float], ops: float
) -> Line:
    alpha, loop, plain = acceptance(answers), loop_of(answers), loop_of(plainly)
    plain_token_s = {answer.prompt: loop_of([answer]).token_s for answer in plainly}
    return Line(
        gamma=gamma,
        alpha=alpha,
        tokens=(expected_tokens(alpha, gamma), expected_tokens_by_position(places), loop.tokens),
        pass_ratio=known.pass_ratio(gamma + 1),
        factor=(
            walltime_factor(alpha, gamma, known.c),
            predict(alpha, gamma, known, beside=loop.beside_s / plain.pass_s),
            loop.speedup(plain),
        ),
        by_prompt=tuple(
            plain_token_s[answer.prompt] / loop_of([answer]).token_s
            for answer in answers
            if answer.prompt in plain_token_s
        ),
        loop=loop,
        operations=(operations_factor(alpha, gamma, ops), (gamma * ops + gamma + 1) / loop.tokens),
    )


def predict(alpha: float, gamma: int, known: Costs, beside: float) -> float:
    """The walltime factor with T(m).

    Args:
        alpha: acceptance rate.
        gamma: draft length.
        known: costs.
        beside: what a round takes beside drafting and its pass, in passes over one row.
    """
    loop = Loop(
        tokens=expected_tokens(alpha, gamma),
        draft_s=gamma * known.c,
        pass_s=known.pass_ratio(gamma + 1),
        beside_s=beside,
    )
    return loop.speedup(Loop(tokens=1.0, draft_s=0.0, pass_s=1.0, beside_s=known.plain_beside))


def best(factor: Callable[[int], float]) -> tuple[int, float]:
    """The draft length with the largest factor, and the factor."""
    gamma = best_gamma(factor, LONGEST)
    return gamma, factor(gamma)


def best_predicted(alpha: float, known: Costs) -> tuple[int, float]:
    """With T(m), where to judge a draft costs what a plain round takes beside its pass."""
    return best(lambda gamma: predict(alpha, gamma, known, known.plain_beside))


def best_measured(rows: Sequence[Line]) -> tuple[int, float]:
    """Of the draft lengths that were tried, and of none."""
    line = max(rows, key=lambda row: row.factor[2])
    return (line.gamma, line.factor[2]) if line.factor[2] > 1.0 else (0, 1.0)


def costs(results: Results, case: Case) -> Costs:
    """Over the prompts of a case, each with the same weight, as measured factors are ratios of sums."""
    probes = [each for each in results.probes if (each.part, each.temperature) == (case.part, case.temperature)]
    plain, passes = plain_loop(results, case), mean_passes(probes)
    return Costs(
        pass_ratios=[seconds / passes[0] for seconds in passes],
        c=statistics.fmean(probe.step_s[case.draft] for probe in probes) / passes[0],
        plain_beside=(plain.draft_s + plain.beside_s) / plain.pass_s,
    )


def mean_passes(probes: Sequence[Probe]) -> list[float]:
    """Seconds of passes over 1, 2, ... rows, on average."""
    return [statistics.fmean(column) for column in zip(*(probe.pass_s for probe in probes), strict=True)]


def memory_states(results: Results) -> list[Sequence[Probe]]:
    """Probes while memory was fast, and while it was slow: whose T(1) is nearer to the shortest, or to the longest."""
    probes = [each for each in results.probes if each.part == CHAINS[0].part]
    plain = [probe.pass_s[0] for probe in probes]
    middle = (min(plain) + max(plain)) / 2
    return [[probe for probe in probes if (probe.pass_s[0] > middle) == slow] for slow in (False, True)]


def operations_ratio(results: Results, draft: str) -> float:
    """ĉ, by the products in the matrices."""
    return results.models[draft].row_macs / results.models[TARGET].row_macs


def plain_loop(results: Results, case: Case) -> Loop:
    """The average round of plain decoding beside which a case was measured."""
    return loop_of(answers_of(results, case._replace(draft=PLAIN)))


def loop_of(answers: Sequence[Answer]) -> Loop:
    """The average round of all answers."""
    rounds = sum(answer.rounds for answer in answers)
    tokens, draft_s, pass_s, beside_s = (
        sum(getattr(answer, name) for answer in answers) / rounds
        for name in ("tokens", "draft_s", "pass_s", "beside_s")
    )
    return Loop(tokens=tokens, draft_s=draft_s, pass_s=pass_s, beside_s=beside_s)


def acceptance(answers: Sequence[Answer]) -> float:
    """Accepted / tested."""
    return sum(sum(answer.accepted) for answer in answers) / sum(sum(answer.tested) for answer in answers)


def acceptance_by_place(answers: Sequence[Answer]) -> tuple[float, ...]:
    """Accepted / tested at each place of a draft; 0 at places that were never reached."""
    places = range(max(answer.gamma for answer in answers))
    tested, accepted = (
        [sum(sum(getattr(answer, name)[place : place + 1]) for answer in answers) for place in places]
        for name in ("tested", "accepted")
    )
    return tuple(right / count if count else 0.0 for right, count in zip(accepted, tested, strict=True))


def answers_of(results: Results, case: Case) -> list[Answer]:
    """Those of a case."""
    return [
        each
        for each in results.answers
        if (each.part, each.draft, each.temperature) == (case.part, case.draft, case.temperature) and each.rounds
    ]
