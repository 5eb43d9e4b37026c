"""The parts of docs/papers.md about theory, time and arithmetic."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from functools import partial

from benchmarks.papers.markdown import heading, paragraph, percent, table
from benchmarks.papers.predictions import (
    CHAINS,
    Case,
    Line,
    acceptance,
    answers_of,
    best,
    best_measured,
    best_predicted,
    costs,
    lines,
    mean_passes,
    memory_states,
    operations_ratio,
)
from benchmarks.papers.results import DRAFT, TARGET, Results
from benchmarks.papers.simulation import ROUNDS, TABLE_1, Published, by_formula

from borrador.bench.statistics import median_interval
from borrador.bench.theory import operations_factor, walltime_factor

LIMIT = 0.10  # how far a prediction may be from what is measured
_PAPERS_C = 0.02


def table_1(results: Results) -> list[str]:
    """Table 1 of the paper, by formula and by simulation."""
    rows: list[Sequence[object]] = []
    worst = 0.0
    for line in TABLE_1:
        formula, played = by_formula(line), _simulated(results, line)
        cells: list[object] = [line.alpha, line.gamma]
        for printed, computed, simulated in zip((line.operations, line.speed), formula, played, strict=True):
            worst = max(worst, abs(simulated / printed - 1.0))
            cells += [f"{printed:.2f}", f"{computed:.2f}", f"{simulated:.3f}"]
        rows.append(cells)
    headings = ("α", "γ", "arithmetic: paper", "formula", "simulated", "speed: paper", "formula", "simulated")
    return [
        *heading("What α and γ give where drafting costs nothing"),
        *paragraph("Table 1 of 2211.17192, with c = ĉ = 0:"),
        *table(headings, rows),
        *paragraph(
            f"""Simulated: {ROUNDS} drafts of γ tokens are drawn from q and judged against p by the product's own
            rejection rule. The vocabulary has six tokens, and sum of min(p, q) is α in every row; q gives three
            of the tokens too much, which are accepted now and then, and the others too little. Nothing simulated
            is further from the paper's value than {percent(worst, 1)}."""
        ),
    ]


def _simulated(results: Results, line: Published) -> tuple[float, float]:
    played = next(each for each in results.simulated if (each.alpha, each.gamma) == (line.alpha, line.gamma))
    return played.operations, played.speed


def walltime(results: Results) -> list[str]:
    """Predicted and measured walltime factors."""
    text = heading("The walltime factor, predicted and measured")
    for case in CHAINS:
        text += [f"Temperature {case.temperature:g}:", "", *_walltime_table(lines(results, case))]
    every = [line for case in CHAINS for line in lines(results, case)]
    typical = statistics.median(abs(line.error) for line in every)
    worst = max(every, key=lambda line: abs(line.error))
    return [
        *text,
        "![Walltime factor by draft length: the theorem, with T(m), measured](papers-walltime.svg)",
        "",
        *paragraph(
            f"""With T(m), predictions are {verdict(every)} of what was measured. The largest difference is
            {percent(worst.error, 1, signed=True)}, for γ = {worst.gamma}; the median of all, without their signs,
            is {percent(typical, 1)}. α is accepted / tested tokens of the same answers; T(m) and c were timed by
            themselves; b alone is read off the rounds whose time is predicted. A draft takes a little longer than
            γ timed steps: behind one that was wholly accepted, the draft model has two tokens to read instead of
            one."""
        ),
        *paragraph(
            f"""The paper compares in the same way. For its 77M draft at temperature 0 (α = 0.75, γ = 7, c =
            {_PAPERS_C}) the theorem gives {walltime_factor(0.75, 7, _PAPERS_C):.2f}, and 3.4 was measured; for
            its 800M draft 2.5 was predicted and 1.7 measured."""
        ),
        *paragraph(
            """Measured is the time of all plain answers' tokens / that of all drafted ones; beside it stands the
            median of the prompts' own factors with its 95 % interval (bootstrap). Equation 1 has one α for all
            places of a draft. `By place` has the acceptance at each place of the drafts of eight tokens in its
            stead, and gives short drafts a little too few: a long one nearly always ends at a miss, so that the
            next begins where the text is hard. At temperature 1 every draft length writes another text, so α
            differs from line to line by chance, and `by place` is off by as much."""
        ),
    ]


def _walltime_table(rows: Sequence[Line]) -> list[str]:
    headings = (
        *("γ", "α", "tokens a pass: equation 1", "by place", "measured"),
        *("factor: theorem 3.8", "with T(m)", "measured", "difference", "median of prompts"),
    )
    return table(headings, map(_walltime_row, rows))


def _walltime_row(line: Line) -> Sequence[object]:
    numbers = (f"{number:.2f}" for number in (*line.tokens, *line.factor))
    interval = median_interval(line.by_prompt)
    bounds = f" ({interval.low:.2f} to {interval.high:.2f})" if interval else ""
    by_prompt = f"{statistics.median(line.by_prompt):.2f}{bounds}"
    return (line.gamma, f"{line.alpha:.3f}", *numbers, percent(line.error, 1, signed=True), by_prompt)


def verdict(rows: Sequence[Line]) -> str:
    """How many predictions are as close as they should be."""
    close = sum(abs(line.error) <= LIMIT for line in rows)
    cases = "" if close == len(rows) else f"in {close} of {len(rows)} cases "
    return f"{cases}within {percent(LIMIT)}"


def machine(results: Results) -> list[str]:
    """T(m) and c, and what follows from them."""
    known = [costs(results, case) for case in CHAINS]
    fast, slow = memory_states(results)
    states = [mean_passes(fast), mean_passes(slow)]
    greedy, sampled = (lines(results, case)[-1] for case in CHAINS)
    share = results.models[DRAFT].weights_bytes / results.models[TARGET].weights_bytes
    return [
        *heading("Where this machine differs from the papers', and why"),
        *paragraph("**T(m) is not T(1).** Milliseconds of a pass over m rows:"),
        *table(
            ("memory", *(f"m = {count}" for count in range(1, len(states[0]) + 1))),
            (
                (name, *(f"{1e3 * seconds:.1f}" for seconds in state))
                for name, state in zip(("fast", "slow"), states, strict=True)
            ),
        ),
        *paragraph(
            f"""The theorem takes T(m) for T(1), as on an accelerator whose arithmetic is idle while it reads weights.
            The kernels here are made so that a few rows cost hardly more than one; with more, the integer units
            of two cores take longer than memory does. This virtual machine's memory is fast for some minutes and
            slow for others ({len(fast)} and {len(slow)} of the prompts). When it is fast, T(1) is short, and
            arithmetic shows earlier: T(9) / T(1) is {states[0][-1] / states[0][0]:.2f}, and
            {states[1][-1] / states[1][0]:.2f} when it is slow. So the theorem alone is {percent(_excess(greedy))}
            too high for γ = {greedy.gamma} at temperature 0, and {percent(_excess(sampled))} at temperature 1."""
        ),
        *paragraph(
            f"""**c is large.** A draft token takes {known[0].c:.2f} T(1) at temperature 0 and {known[1].c:.2f} at
            temperature 1. Its pass reads {percent(share)} of the bytes that the target's does; the paper's
            smallest T5 has 0.7 % of its target's weights, and c = {_PAPERS_C}. So the best drafts here are short:"""
        ),
        *table(("best γ: factor", *(f"temperature {case.temperature:g}" for case in CHAINS)), _best(results)),
        *paragraph(
            f"""The first line is what the same α would be worth with the paper's c = {_PAPERS_C}. α of a line is that
            of all draft lengths together; measured are γ = 1 to 8 alone."""
        ),
    ]


def _excess(line: Line) -> float:
    """What the theorem promises beyond what was measured."""
    return line.factor[0] / line.factor[2] - 1.0


def _best(results: Results) -> list[Sequence[str]]:
    """The best draft length by several measures."""
    columns = [_best_of(results, case) for case in CHAINS]
    names = (f"theorem 3.8, c = {_PAPERS_C}", "theorem 3.8, c of this machine", "with T(m)", "measured")
    cells = ((f"{gamma}: {factor:.2f}" for gamma, factor in column) for column in columns)
    return list(zip(names, *cells, strict=True))


def _best_of(results: Results, case: Case) -> list[tuple[int, float]]:
    alpha, known = acceptance(answers_of(results, case)), costs(results, case)
    return [
        best(partial(walltime_factor, alpha, c=_PAPERS_C)),
        best(partial(walltime_factor, alpha, c=known.c)),
        best_predicted(alpha, known),
        best_measured(lines(results, case)),
    ]


def operations(results: Results) -> list[str]:
    """The factor of arithmetic."""
    by_case = [lines(results, case) for case in CHAINS]
    rows = (
        (pair[0].gamma, *(f"{value:.2f}" for line in pair for value in line.operations))
        for pair in zip(*by_case, strict=True)
    )
    headings = (f"T = {case.temperature:g}: {kind}" for case in CHAINS for kind in ("theorem 3.11", "measured"))
    return [
        *heading("The factor of arithmetic"),
        *paragraph(
            f"""ĉ, the products in the matrices of the draft model / those of the target, is
            {operations_ratio(results, DRAFT):.2f}. Measured is what rounds computed for each token that they
            wrote:"""
        ),
        *table(("γ", *headings), rows),
        *paragraph(
            f"""With ĉ = {_PAPERS_C}, α = 0.8 and γ = 5 it would be {operations_factor(0.8, 5, _PAPERS_C):.2f}. This
            is why T(m) rises where arithmetic is scarce."""
        ),
    ]


def tasks(results: Results) -> list[str]:
    """α by kind of prompt."""
    names = dict.fromkeys(answer.task for answer in answers_of(results, CHAINS[0]))
    rows = (
        (name, *(f"{alpha:.2f}" for case in CHAINS for alpha in _both_alphas(results, case, name))) for name in names
    )
    kinds = (f"T = {case.temperature:g}: {kind}" for case in CHAINS for kind in ("accepted / tested", "along answers"))
    return [
        *heading("α by kind of prompt"),
        *table(("prompts", *kinds), rows),
        *paragraph(
            """Along answers: the mean of sum of min(p, q) over every token of answers that the target wrote by
            itself, which are longer. At temperature 0 both laws are point masses, and α is the share of tokens
            that both models hold likeliest. Accepted / tested leaves out the tokens behind a miss, which is where
            text is hard, so the two need not be one."""
        ),
    ]


def _both_alphas(results: Results, case: Case, task: str) -> tuple[float, float]:
    tested = acceptance([answer for answer in answers_of(results, case) if answer.task == task])
    return tested, mean_alpha(results, case.draft, case.temperature, task)


def mean_alpha(results: Results, draft: str, temperature: float, task: str | None = None) -> float:
    """α of a draft along the target's answers: the mean over their tokens."""
    known = [
        each
        for each in results.acceptance
        if (each.draft, each.temperature) == (draft, temperature) and task in (None, each.task)
    ]
    return sum(each.alpha * each.tokens for each in known) / sum(each.tokens for each in known)
