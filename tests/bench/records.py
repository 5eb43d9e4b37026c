"""A saved benchmark with numbers that can be worked out by hand."""

from __future__ import annotations

from borrador.bench.record import Machine, ModelFile, Record, Settings, Versions
from borrador.bench.row_cost import RowCosts
from borrador.bench.runs import DrafterFigures, Pair, RoundFigures, Run
from borrador.bench.summary import summarise

TEXT = "one two three four five"
SETTINGS = Settings(
    draft=("suffix", "draft.gguf"),
    draft_tokens=None,
    draft_shortlist=None,
    draft_weights="auto",
    history=False,
    profile=False,
    context=4096,
    max_tokens=64,
    temperature=0.0,
    seed=None,
    repeats=2,
    start="carried",
    prompts="prompts.jsonl",
    per_task=None,
    warm_up_prompts=(),
)


def make_run(decode_s: float, passes: int = 5, *, token_ids: tuple[int, ...] = (1, 2, 3, 4, 5)) -> Run:
    """An answer of five tokens; below five passes it was drafted, and each pass but the last committed two of them.

    A quarter of the time went into drafting and a tenth into sampling, where there were drafts.
    """
    drafted = passes < 5
    draft_s = decode_s / 4 if drafted else 0.0
    rounds = passes - 1
    each = RoundFigures(
        2 if drafted else 1, 4 if drafted else 1, draft_s / rounds, decode_s / 2 / rounds, 0.0, decode_s / rounds
    )
    figures = DrafterFigures(
        drafter="suffix", rounds=rounds, proposed=3 * rounds, tested=(rounds, rounds), accepted=(rounds, 0)
    )
    return Run(
        text=TEXT,
        token_ids=token_ids,
        finish_reason="stop",
        tokens=len(token_ids),
        prompt_tokens=20,
        prompt_tokens_cached=0,
        passes=passes,
        prefill_s=0.1,
        decode_s=decode_s,
        draft_s=draft_s,
        forward_s=decode_s / 2,
        sample_s=decode_s / 10 if drafted else 0.0,
        drafters=(figures,) if drafted else (),
        rounds=(each,) * rounds,
    )


def make_pair(
    prompt: str, task: str, speedup: float, *, repeat: int = 0, token_ids: tuple[int, ...] = (1, 2, 3, 4, 5)
) -> Pair:
    """Plain decoding took 0.4 s for four tokens; the speculative answer has these tokens."""
    return Pair(
        prompt=prompt,
        task=task,
        repeat=repeat,
        plain_first=repeat % 2 == 0,
        plain=make_run(0.4),
        speculative=make_run(0.4 / speedup, passes=3, token_ids=token_ids),
    )


PAIRS = tuple(
    make_pair(prompt, task, speedup + 0.1 * repeat, repeat=repeat)
    for repeat in (0, 1)
    for prompt, task, speedup in (("qa-1", "qa", 1.0), ("qa-2", "qa", 1.5), ("code-1", "code", 3.0))
)


def make_record(pairs: tuple[Pair, ...] = PAIRS, settings: Settings = SETTINGS) -> Record:
    """Of these pairs, on a machine with two cores and two models."""
    return Record(
        date="2026-01-31T12:00:00+00:00",
        versions=Versions(borrador="0.1.0", python="3.12.1", numpy="2.1.0"),
        machine=Machine(cpu="A Processor", cores=2, threads=2, isa="avx2", memory_bytes=8 * 2**30, os="Linux 6.1"),
        model=ModelFile(name="target.gguf", bytes=1000, sha256="0" * 63 + "1"),
        draft_models=(ModelFile(name="draft.gguf", bytes=100, sha256="0" * 63 + "2"),),
        settings=settings,
        row_costs=RowCosts(
            {1: 0.010, 2: 0.011, 4: 0.012, 8: 0.018, 16: 0.030},
            weights_bytes=90_000_000,
            read_bandwidth=10e9,
            row_macs=10**8,
            integer_peak=6e10,
        ),
        pairs=pairs,
        summary=summarise(pairs, compared=settings.compares_answers),
    )
