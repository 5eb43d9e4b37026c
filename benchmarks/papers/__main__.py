"""The tables of arXiv 2211.17192 and 2302.01318, computed by the product's code and measured on a pair of models.

    python -m benchmarks.papers --part simulation                   Table 1 of the former; needs no model
    python -m benchmarks.papers --part alpha --temperature 0        α of n-grams and draft models
    python -m benchmarks.papers --part chain --temperature 1        draft lengths 0 to 8
    python -m benchmarks.papers --part sizes --temperature 0        cheaper draft models
    python -m benchmarks.papers --render                            docs/papers.md and its plots; needs no model

Measurements are added to docs/papers.json; `--skip` and `--take` cut a part into pieces. They are compared with others
of the same minutes only, but want a machine that does nothing else.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.papers.alpha import measure_alpha
from benchmarks.papers.drafts import make_draft
from benchmarks.papers.results import DRAFT, OTHER, TARGET, Model, read, write
from benchmarks.papers.simulation import TABLE_1, simulate
from benchmarks.papers.writing import CONTEXT, Desk, Way, write_answers

from borrador.bench.prompts import load_prompts
from borrador.config import EngineConfig
from borrador.draft.cross import CrossDrafter
from borrador.draft.model import ModelDrafter
from borrador.draft.protocol import Drafter
from borrador.draft.shortlist import AUTOMATIC_SIZE, Shortlist, frequent_tokens
from borrador.engine.loading import Parts, open_parts
from borrador.models.download import resolve
from borrador.models.native import NativeModel, NativeShortlist

DOCS = Path(__file__).parents[2] / "docs"
JSON = DOCS / "papers.json"
SHORT = f"{DRAFT}, short head"
Q4, TRIMS = f"{DRAFT}, Q4_0", {f"{DRAFT}, {layers} layers": layers for layers in (22, 20, 16)}
TIMED_TRIM = f"{DRAFT}, 22 layers"
WAYS = {
    "chain": (Way(), *(Way(DRAFT, gamma) for gamma in range(1, 9))),
    "sizes": (Way(), *(Way(name, gamma) for name in (SHORT, Q4, TIMED_TRIM, OTHER) for gamma in range(1, 5))),
}
DRAFTS = {"alpha": (DRAFT, Q4, *TRIMS), "chain": (DRAFT,), "sizes": (DRAFT, SHORT, Q4, TIMED_TRIM, OTHER)}
TOKENS = {"alpha": 64, "chain": 40, "sizes": 32}  # of each answer


def main() -> None:
    options = read_options()
    if options.part:
        measure(options)
    if options.render:
        from benchmarks.papers.page import save

        save(read(options.json), DOCS)


def measure(options: argparse.Namespace) -> None:
    """Add one part to the results."""
    results = read(options.json)
    if options.part == "simulation":
        played = [simulate(line.alpha, line.gamma) for line in TABLE_1]
        write(results.with_more(options.part, simulated=played), options.json)
        return
    prompts = load_prompts(per_task=options.per_task)[options.skip :][: options.take]
    with open_desk(options.part, options.temperature) as desk:
        results = results.with_more(options.part, models=describe(desk))
        if options.part == "alpha":
            measured = measure_alpha(desk, prompts, options.seed)
            write(results.with_more(options.part, acceptance=measured), options.json)
            return
        for number, prompt in enumerate(prompts, options.skip):
            answers, probe = write_answers(desk, prompt, WAYS[options.part], options.seed + number)
            results = results.with_more(options.part, answers, [probe])
            write(results, options.json)
            print(f"{prompt.id}: {sum(answer.seconds for answer in answers):.1f} s", flush=True)


@contextmanager
def open_desk(part: str, temperature: float) -> Iterator[Desk]:
    """The models of a part."""
    files = {name: file_of(name) for name in DRAFTS[part] if name != SHORT}
    config = EngineConfig(
        draft=tuple(files.values()), context=CONTEXT, draft_shortlist=0, draft_weights="file", profile=False
    )
    parts = open_parts(TARGET, config)
    try:
        opened = {drafter.name: drafter for drafter in parts.drafters}
        drafters = {name: plain_chain(opened[file]) for name, file in files.items()}
        if SHORT in DRAFTS[part]:
            drafters[SHORT] = with_short_head(parts, drafters[DRAFT])
        yield Desk(part=part, parts=parts, drafters=drafters, temperature=temperature, tokens=TOKENS[part])
    finally:
        parts.close()


def file_of(name: str) -> str:
    """What the engine calls a draft: a catalogue name, or the path of a file that is made where it is missing."""
    if name in TRIMS:
        return str(make_draft(resolve(DRAFT), layers=TRIMS[name]))
    return str(make_draft(resolve(DRAFT), quantisation="Q4_0")) if name == Q4 else name


def plain_chain(drafter: Drafter) -> ModelDrafter | CrossDrafter:
    """A draft model that drafts as the papers' do: a chain of γ tokens, whatever they are."""
    assert isinstance(drafter, ModelDrafter | CrossDrafter)
    model = drafter.drafter if isinstance(drafter, CrossDrafter) else drafter
    model.alternatives, model.end_ids = False, frozenset()
    return drafter


def with_short_head(parts: Parts, drafter: ModelDrafter | CrossDrafter) -> ModelDrafter:
    """The same weights, proposing frequent tokens and those of the text alone, as the product's default does."""
    assert isinstance(drafter, ModelDrafter)
    assert isinstance(drafter.model, NativeModel)
    tokens = frequent_tokens(parts.tokenizer, AUTOMATIC_SIZE, drafter.vocabulary_size)
    return ModelDrafter(
        SHORT,
        drafter.model,
        context_length=drafter.context_length,
        vocabulary_size=drafter.vocabulary_size,
        shortlist=Shortlist(drafter.model, tokens),
    )


def describe(desk: Desk) -> dict[str, Model]:
    """The models of a desk by their names in the results."""
    models = {TARGET: describe_model(TARGET, desk.parts.model)}
    for name, drafter in desk.drafters.items():
        inner = drafter.drafter if isinstance(drafter, CrossDrafter) else drafter
        models[name] = describe_model(DRAFT if name == SHORT else file_of(name), inner.model, inner.shortlist)
    return models


def describe_model(file: str, model: object, shortlist: Shortlist | None = None) -> Model:
    """A model by its file, and what a pass reads and computes."""
    assert isinstance(model, NativeModel)
    weights, macs = model.weights_bytes, model.row_macs
    if shortlist is not None:
        assert isinstance(shortlist.common, NativeShortlist)
        weights += shortlist.common.bytes - round(model.head_share * weights)
        macs -= (model.config.vocabulary_size - len(shortlist.common)) * model.config.width
    return Model(
        layers=model.config.layers, file_bytes=resolve(file).stat().st_size, weights_bytes=weights, row_macs=macs
    )


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=("simulation", *DRAFTS), help="measure this")
    parser.add_argument("--temperature", type=float, default=0.0)
    parser.add_argument("--per-task", type=int, default=None, help="prompts of each task; all of them")
    parser.add_argument("--skip", type=int, default=0, help="prompts to leave out at the beginning")
    parser.add_argument("--take", type=int, default=1000, help="prompts to answer")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, default=JSON, help="where results are kept")
    parser.add_argument("--render", action="store_true", help="write the page and its plots from the results")
    options = parser.parse_args()
    if not (options.part or options.render):
        parser.error("give --part, --render or both")
    return options


if __name__ == "__main__":
    main()
