from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.verify.scripted import right_model, small_drafter

from borrador.sampling.noise import FreshNoise, Noise
from borrador.sampling.rules import BlockRule, RejectionRule
from borrador.sampling.shaping import History, Shaper
from borrador.types import SamplingParams
from borrador.verify.draws import CertainTokens, DrawnChains, DrawnTrees, MakeRule, ResamplingRule, draw
from borrador.verify.place import exact_laws, read_tables
from borrador.verify.statistics import fit
from borrador.verify.tables import Logits, ModelSource, TableModel

DRAWS = 3000
SHAPER = Shaper(SamplingParams(temperature=1.0, top_k=4))


@pytest.fixture(scope="module")
def tables() -> tuple[Logits, Logits]:
    target, draft = (ModelSource(model, 256, 16) for model in (right_model(), small_drafter().model))
    return read_tables(target, draft, [1, 2, 3], SHAPER)


def wrong(shaper: Shaper, noise: Noise) -> ResamplingRule:
    return ResamplingRule(RejectionRule(shaper, noise), shaper, noise)


def law_of(row: NDArray[np.float32]) -> NDArray[np.float64]:
    dense = np.zeros(16, np.float32)
    SHAPER.law(row, History()).write(dense)
    exact = dense.astype(np.float64)
    return np.asarray(exact / exact.sum())


@pytest.mark.parametrize("rule", [RejectionRule, BlockRule])
@pytest.mark.parametrize(
    "drafting", [DrawnChains(), DrawnTrees(2), DrawnTrees(3), CertainTokens(1), CertainTokens(2), CertainTokens(3)]
)
def test_what_ships_follows_the_exact_law(
    tables: tuple[Logits, Logits], drafting: DrawnChains | DrawnTrees | CertainTokens, rule: MakeRule
) -> None:
    p, q = tables
    counts = draw(TableModel(p), TableModel(q), drafting, SHAPER, rule, DRAWS, seed=3)
    found = fit(counts, exact_laws(p, SHAPER)[2])
    assert found.draws == DRAWS
    assert found.freedom > 20
    assert found.p_value > 1e-4


@pytest.mark.parametrize("drafting", [DrawnChains(), DrawnTrees(3), CertainTokens(1), CertainTokens(3)])
def test_laws_of_very_few_tokens_are_followed_too(drafting: DrawnChains | DrawnTrees | CertainTokens) -> None:
    shaper = Shaper(SamplingParams(temperature=0.7, top_k=6, top_p=0.5))
    target, draft = (ModelSource(model, 256, 16) for model in (right_model(), small_drafter().model))
    p, q = read_tables(target, draft, [1, 2, 12], shaper)
    law = exact_laws(p, shaper)[2]
    found = fit(draw(TableModel(p), TableModel(q), drafting, shaper, BlockRule, DRAWS, seed=5), law)
    assert found.p_value > 1e-4


def test_resampling_gives_just_the_law_that_it_should_wrongly_give(tables: tuple[Logits, Logits]) -> None:
    p, q = tables
    counts: Counter[int] = Counter()
    for answer, count in draw(TableModel(p), TableModel(q), DrawnChains(), SHAPER, wrong, DRAWS, seed=4).items():
        counts[answer[0]] += count
    right, drafted = law_of(p[()]), law_of(q[()])
    kept = np.minimum(right, drafted)
    resampled = kept + (1.0 - kept.sum()) * right
    assert fit(counts, dict(enumerate(resampled.tolist()))).p_value > 1e-4
    assert fit(counts, dict(enumerate(right.tolist()))).p_value < 1e-6


def test_equal_seeds_draw_the_same_answers(tables: tuple[Logits, Logits]) -> None:
    target, draft = (TableModel(table) for table in tables)
    first, again, other = (draw(target, draft, DrawnChains(), SHAPER, BlockRule, 200, seed) for seed in (7, 7, 8))
    assert first == again != other
    assert {len(answer) for answer in first} == {3}


@pytest.mark.parametrize(
    ("drafting", "budgets"),
    [
        (DrawnChains(), (0, 1, 2)),
        (CertainTokens(1), (0, 1, 2)),
        (DrawnTrees(2), (0, 2, 6)),
        (CertainTokens(3), (0, 3, 12)),
    ],
)
def test_drafts_fill_the_answer_and_no_more(
    tables: tuple[Logits, Logits], drafting: DrawnChains | DrawnTrees | CertainTokens, budgets: tuple[int, ...]
) -> None:
    noise = FreshNoise(np.random.default_rng(1))
    session = drafting.on(TableModel(tables[1]), SHAPER, noise)()
    assert drafting.budgets == budgets
    draft = session.propose([0], budgets[2])
    assert len(draft.tokens) == budgets[2]
    if draft.q is not None:
        rows = {-1: (), **{i: draft.path_to(i + 1) for i, _ in enumerate(draft.tokens)}}
        for parent in set(draft.parents or range(-1, 1)):
            assert draft.q[parent + 1].tolist() == pytest.approx(law_of(tables[1][rows[parent]]).tolist(), abs=1e-6)
