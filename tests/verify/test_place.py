from __future__ import annotations

import numpy as np
import pytest
from tests.scripted import VOCABULARY
from tests.verify.scripted import make_rig, right_model, small_drafter, small_model

from borrador.models.scripted import ScriptedModel
from borrador.sampling.shaping import Shaper
from borrador.types import SamplingParams
from borrador.verify.place import TREE_ROWS, exact_laws, open_place, read_tables
from borrador.verify.tables import ModelSource

PARAMS = SamplingParams(temperature=0.8, top_k=6, top_p=0.9)


def plain_law(row: np.ndarray[tuple[int], np.dtype[np.float32]]) -> dict[int, float]:
    """Top-k, top-p and temperature as they are defined, in double precision."""
    order = np.argsort(-row.astype(np.float64), kind="stable")[: PARAMS.top_k]
    weights = np.exp(row[order].astype(np.float64))
    share = np.cumsum(weights / weights.sum())
    order = order[: int((share < PARAMS.top_p).sum()) + 1]
    heated = np.exp(row[order].astype(np.float64) / PARAMS.temperature)
    return dict(zip(order.tolist(), (heated / heated.sum()).tolist(), strict=True))


def test_exact_laws_are_products_along_the_prefixes() -> None:
    model = ScriptedModel(VOCABULARY, seed=9)
    source = ModelSource(model, 256, VOCABULARY)
    p, _ = read_tables(source, source, [3, 1], Shaper(PARAMS))
    laws = exact_laws(p, Shaper(PARAMS))
    expected = {}
    for first, a in plain_law(model.logits_after([3, 1])).items():
        for second, b in plain_law(model.logits_after([3, 1, first])).items():
            for third, c in plain_law(model.logits_after([3, 1, first, second])).items():
                expected[first, second, third] = a * b * c
    assert laws[2] == pytest.approx(expected, rel=1e-5)
    for law in laws:
        assert sum(law.values()) == pytest.approx(1.0)


def test_tables_hold_every_prefix_that_target_or_drafter_may_write() -> None:
    target, draft = ScriptedModel(VOCABULARY, seed=9), ScriptedModel(VOCABULARY, seed=10)
    sources = [ModelSource(model, 256, VOCABULARY) for model in (target, draft)]
    p, q = read_tables(sources[0], sources[1], [3, 1], Shaper(PARAMS))
    assert set(p) == set(q)
    assert len(p) <= TREE_ROWS
    for prefix in p:
        if len(prefix) < 2:
            here = [3, 1, *prefix]
            tokens = {*plain_law(target.logits_after(here)), *plain_law(draft.logits_after(here))}
            assert tokens == {other[-1] for other in p if other[:-1] == prefix and other}


def test_the_place_is_where_a_wrong_rule_shows_most() -> None:
    tokens = [3, 1, 14, 7, 0, 2]
    place = open_place(make_rig(), "text", tokens, small_drafter(), PARAMS)

    def shown(last: int) -> float:
        p, q = (plain_law(model.logits_after([last])) for model in (right_model(), small_model()))
        kept = {token: min(mass, q.get(token, 0.0)) for token, mass in p.items()}
        refused = 1.0 - sum(kept.values())
        return sum((kept[token] + refused * mass - mass) ** 2 / mass for token, mass in p.items())

    best = plain_law(right_model().logits_after([max(tokens, key=shown)]))
    assert place.laws[0] == pytest.approx({(token,): mass for token, mass in best.items()}, rel=1e-5)
    assert place.name == "text, small, temperature 0.8, top-k 6, top-p 0.9"


def test_without_a_draft_model_the_targets_own_logits_are_disturbed() -> None:
    place = open_place(make_rig(), "text", [3, 1, 14], None, PARAMS)
    assert place.name == "text, disturbed logits, temperature 0.8, top-k 6, top-p 0.9"
    noise = np.concatenate([place.draft.rows[prefix] - row for prefix, row in place.target.rows.items()])
    assert noise.std() == pytest.approx(1.0, abs=0.1)
