"""The parts of docs/papers.md about kinds of drafts, and Chen's loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from benchmarks.papers import published
from benchmarks.papers.markdown import heading, paragraph, table
from benchmarks.papers.predictions import (
    CHAINS,
    Case,
    Line,
    acceptance,
    answers_of,
    best_measured,
    best_predicted,
    costs,
    lines,
    plain_loop,
)
from benchmarks.papers.results import PLAIN, TARGET, Acceptance, Results
from benchmarks.papers.sections import mean_alpha


def grams(results: Results) -> list[str]:
    """α of unigrams, bigrams and models, beside Table 3."""
    names = dict.fromkeys(("unigram", "bigram", *(each.draft for each in results.acceptance)))
    own = [(TARGET, name, *(f"{mean_alpha(results, name, case.temperature):.2f}" for case in CHAINS)) for name in names]
    papers = [(line.target, line.draft, f"{line.greedy:.2f}", f"{line.sampled:.2f}") for line in published.TABLE_3]
    counted = [sum(each.tokens for each in _unigrams(results, case)) for case in CHAINS]
    return [
        *heading("α of unigrams, bigrams and models"),
        *paragraph("Table 3 of 2211.17192, and the same of ours below it:"),
        *table(("target", "draft", "α, T = 0", "α, T = 1"), [*papers, *own]),
        *paragraph(
            f"""Ours are means over {counted[0]} tokens that the target wrote at temperature 0 and {counted[1]} at
            temperature 1, in answer to {len(_unigrams(results, CHAINS[0]))} prompts. Unigrams and bigrams are
            counted in the prompts and answers of all other prompts: a few thousand tokens, but of the same kind.
            A bigram that begins with a token they do not have falls back to unigrams. Unigrams are as weak as in
            the paper. Such counts propose something for every token; the drafters `suffix` and `lookup` copy
            where the text repeats itself, and propose nothing elsewhere."""
        ),
        *paragraph(
            """`layers`: so many of 24 are kept, the first, the last and those evenly between; nothing was trained
            again. `Q4_0`: all matrices in four bits, while the files of the others have more. Four bits cost next to
            no α, and leaving out layers costs much."""
        ),
    ]


def _unigrams(results: Results, case: Case) -> list[Acceptance]:
    return [each for each in results.acceptance if (each.draft, each.temperature) == ("unigram", case.temperature)]


def sizes(results: Results) -> list[str]:
    """Cheaper drafts, beside Table 2."""
    papers = (
        (line.draft, f"{line.temperature:g}", line.gamma, f"{line.alpha:.2f}", f"{line.speed:.1f}")
        for line in published.TABLE_2
    )
    headings = ("draft", "MB a step", "c", "α", "predicted best γ: factor", "measured best γ: factor")
    return [
        *heading("The size of the draft"),
        *paragraph("Table 2 of 2211.17192, English to German by T5-XXL (11B), one TPU-v4, batch 1:"),
        *table(("draft", "T", "γ", "α", "times as fast"), papers),
        *paragraph(
            """There the most accurate draft is the slowest, since it costs most. Here, at temperature 0, the 0.5B
            model is set against cheaper drafts of one to four tokens, on twelve prompts:"""
        ),
        *table(headings, (_size_row(of_same_prompts(results, case), case) for case in size_cases(results))),
        *paragraph(
            """`short head`: only 32768 frequent tokens and those of the text may be proposed, so that a step reads
            that part of the LM head alone. The product does that by itself, and rounds this model to Q4_0 besides.
            SmolLM2 has another vocabulary: its text is encoded again, and α counts the target's tokens. To propose a
            token or two it writes one more, which the draft steps timed for c, four at a time, do not show; so its
            short drafts take longer than predicted."""
        ),
        *paragraph(
            """Here too cost decides as much as α. What reads fewer bytes for a step and keeps α is best, and SmolLM2
            comes close with the lowest α of all. Two layers fewer save less time than they lose tokens."""
        ),
    ]


def of_same_prompts(results: Results, case: Case) -> Results:
    """The results of a case without prompts that the comparison of sizes leaves out."""
    prompts = {each.prompt for each in results.probes if each.part == "sizes"}
    return replace(
        results,
        answers=tuple(each for each in results.answers if each.part == case.part and each.prompt in prompts),
        probes=tuple(each for each in results.probes if each.part == case.part and each.prompt in prompts),
    )


def size_cases(results: Results) -> list[Case]:
    """The drafts to compare, the one that others were made of first."""
    found = dict.fromkeys(
        Case(each.part, each.draft, each.temperature)
        for each in results.answers
        if each.part == "sizes" and each.draft != PLAIN
    )
    return [CHAINS[0], *found]


def _size_row(results: Results, case: Case) -> Sequence[object]:
    alpha, known = acceptance(answers_of(results, case)), costs(results, case)
    gamma, factor = best_predicted(alpha, known)
    measured_gamma, measured = best_measured(lines(results, case))
    return (
        case.draft,
        f"{results.models[case.draft].weights_bytes / 1e6:.0f}",
        f"{known.c:.2f}",
        f"{alpha:.2f}",
        f"{gamma}: {factor:.2f}",
        f"{measured_gamma}: {measured:.2f}",
    )


def sweep(results: Results) -> list[str]:
    """Chen's K sweep."""
    case = CHAINS[1]
    plain, rows = plain_loop(results, case), lines(results, case)
    first = (0, f"{plain.seconds * 1e3:.1f}", "", "1.00", f"{plain.token_s * 1e3:.1f}", "1.00")
    loop_ms = published.CHINCHILLA_TOKEN_MS + published.CHINCHILLA_DRAFTED * published.CHINCHILLA_DRAFT_MS
    chinchilla = (
        (line.task, f"{loop_ms:.1f}", f"{loop_ms / line.token_ms:.2f}", f"{line.token_ms:.2f}", f"{line.speed:.2f}")
        for line in published.CHINCHILLA
    )
    return [
        *heading("Chen's loops"),
        *paragraph(
            """Figure 1 of 2302.01318 sweeps the number K of drafted tokens: the time of a loop grows about linearly,
            acceptance falls, and the time of a token has its minimum at a small K. The same with our pair, at
            temperature 1:"""
        ),
        *table(
            ("K", "ms a loop", "accepted / drafted", "tokens a loop", "ms a token", "times as fast"),
            [first, *map(_loop_row, rows)],
        ),
        "![Loop time, acceptance and time of a token by K](papers-loops.svg)",
        "",
        *paragraph(
            f"""Chinchilla (70B) with a draft model of 4B on 16 TPU-v4, K = 4, for comparison. Four draft tokens of
            {published.CHINCHILLA_DRAFT_MS} ms and a pass of {published.CHINCHILLA_TOKEN_MS} ms take {loop_ms:.1f}
            ms if T(5) = T(1), which tells the tokens of a loop:"""
        ),
        *table(("task", "ms a loop", "tokens a loop", "ms a token", "times as fast"), chinchilla),
        *paragraph(
            f"""Its tokens a loop are like ours with K = 4. The difference is c,
            {published.CHINCHILLA_DRAFT_MS / published.CHINCHILLA_TOKEN_MS:.2f} there and
            {costs(results, case).c:.2f} here."""
        ),
    ]


def accepted_share(line: Line) -> float:
    """Accepted / drafted, which is Chen's acceptance rate and falls with K by itself."""
    return (line.loop.tokens - 1.0) / line.gamma


def _loop_row(line: Line) -> Sequence[object]:
    return (
        line.gamma,
        f"{line.loop.seconds * 1e3:.1f}",
        f"{accepted_share(line):.2f}",
        f"{line.loop.tokens:.2f}",
        f"{line.loop.token_s * 1e3:.1f}",
        f"{line.factor[2]:.2f}",
    )
