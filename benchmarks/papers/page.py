"""docs/papers.md and its plots, from what was computed and measured."""

from __future__ import annotations

from pathlib import Path

from benchmarks.papers import draft_sections, sections
from benchmarks.papers.markdown import heading, paragraph, table
from benchmarks.papers.plots import draw_loops, draw_walltime
from benchmarks.papers.predictions import CHAINS, lines, plain_loop
from benchmarks.papers.results import DRAFT, TARGET, Results

from borrador.bench.files import write_whole

_FORMULAS = (
    ("α of two laws", "sum of min(p, q)", "corollary 3.6 of 2211.17192"),
    ("tokens of a pass", "(1 - α^(γ+1)) / (1 - α)", "equation 1"),
    ("walltime factor", "(1 - α^(γ+1)) / ((1 - α) (γ c + 1))", "theorem 3.8"),
    ("the same with T(m)", "(1 + b₀) (1 - α^(γ+1)) / ((1 - α) (γ c + T(γ+1) / T(1) + b))", "here"),
    ("factor of arithmetic", "(1 - α) (γ ĉ + γ + 1) / (1 - α^(γ+1))", "theorem 3.11"),
    ("a loop", "K draft tokens, a pass over K + 1 rows, a verdict", "2302.01318"),
)


def save(results: Results, folder: Path) -> None:
    """Write page and plots."""
    draw_walltime({case.temperature: lines(results, case) for case in CHAINS}, folder / "papers-walltime.svg")
    sweep = CHAINS[1]
    draw_loops(lines(results, sweep), plain_loop(results, sweep), folder / "papers-loops.svg")
    write_whole(folder / "papers.md", render(results))


def render(results: Results) -> str:
    """The page in Markdown."""
    parts = (
        _introduction(results),
        _formulas(),
        sections.table_1(results),
        sections.walltime(results),
        sections.machine(results),
        sections.tasks(results),
        sections.operations(results),
        draft_sections.grams(results),
        draft_sections.sizes(results),
        draft_sections.sweep(results),
        _again(),
    )
    return "\n".join(line for part in parts for line in part)


def _introduction(results: Results) -> list[str]:
    return [
        "# The papers, computed again",
        "",
        *paragraph(
            """What Leviathan et al. ([arXiv 2211.17192](https://arxiv.org/abs/2211.17192)) and Chen et al. ([arXiv
            2302.01318](https://arxiv.org/abs/2302.01318)) predict and print, beside what this package computes
            and measures. `python -m benchmarks.papers --render` wrote this page from [papers.json](papers.json)."""
        ),
        *paragraph(
            f"""Target: {TARGET}; draft model, where nothing else is said: {DRAFT}; both Q4_K_M. {_machines(results)}"""
        ),
        *paragraph(
            """The prompts are those of `borrador bench`. At temperature 0 decoding is greedy; at temperature 1
            nothing is cut off, drafts are drawn from the draft model's law and judged by rejection. All draft
            lengths and plain decoding write their answers on the same weights in turn, always the one that has
            the fewest tokens: so they meet the same machine, whose speed changes within seconds. Between their
            rounds, passes over 1 to 9 rows and draft steps are timed by themselves. Reading the prompt does not
            count."""
        ),
    ]


def _machines(results: Results) -> str:
    """A sentence for all parts that were measured alike."""
    parts_of: dict[tuple[str, ...], list[str]] = {}
    for part, setup in results.setups.items():
        told = (
            f"{setup['processor']}, {setup['cores']} cores, kernels for {setup['kernels']}, {setup['system']}",
            f"{setup['date']}, borrador {setup['borrador']}, Python {setup['python']}",
        )
        parts_of.setdefault(told, []).append(part)
    if len(parts_of) == 1:
        return f"Machine: {'; '.join(*parts_of)}."
    return " ".join(f"Machine of {', '.join(parts)}: {'; '.join(told)}." for told, parts in parts_of.items())


def _formulas() -> list[str]:
    return [
        *heading("What is computed"),
        *paragraph(
            """The functions are in `src/borrador/bench/theory.py`. α is the acceptance rate, γ the draft length, c
            what drafting a token takes / T(1), ĉ the same in arithmetic, T(m) the time of a pass over m rows."""
        ),
        *table(("", "", "source"), _FORMULAS),
        *paragraph(
            """b is what a round takes beside drafting and its pass, and b₀ what a plain round does, both / T(1). At
            temperature 0 they are less than a hundredth; at temperature 1 the laws of rows over the whole
            vocabulary are made and compared, which takes a few hundredths."""
        ),
    ]


def _again() -> list[str]:
    return [
        *heading("Measure again"),
        "```sh",
        "pip install '.[dev]'",
        "python -m benchmarks.papers --part simulation",
        "for temperature in 0 1; do",
        "  python -m benchmarks.papers --part alpha --temperature $temperature",
        "  python -m benchmarks.papers --part chain --temperature $temperature",
        "done",
        "python -m benchmarks.papers --part sizes --per-task 2 --render",
        "```",
        "",
        *paragraph(
            """A quarter of an hour on two cores, which should do nothing else. The cheaper drafts are made on the
            fly and kept in the folder of models. Measurements of the same prompt replace older ones in
            `docs/papers.json`."""
        ),
    ]
