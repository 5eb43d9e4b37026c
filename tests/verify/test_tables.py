from __future__ import annotations

import itertools

import numpy as np
import pytest
from tests.scripted import VOCABULARY

from borrador.models.scripted import ScriptedModel
from borrador.models.target import Rows
from borrador.sampling.shaping import History, Shaper
from borrador.types import SamplingParams
from borrador.verify.tables import DisturbedSource, ModelSource, TableModel, disturb, shrink

PREFIXES = [(), *((token,) for token in (2, 5)), *itertools.product((2, 5), (0, 9))]


def make_source(model: ScriptedModel, vocabulary_size: int = VOCABULARY) -> ModelSource:
    return ModelSource(model, 700, vocabulary_size)


@pytest.mark.parametrize("length", [1, 7, 600])
def test_rows_are_read_after_context_and_prefix(length: int) -> None:
    model = ScriptedModel(VOCABULARY, seed=3, memory=4)
    context = [number * 5 % VOCABULARY for number in range(length)]
    source = make_source(model)
    for _ in range(2):
        read = source.read(context, PREFIXES)
        assert set(read) == set(PREFIXES)
        for prefix, row in read.items():
            assert row.tolist() == model.logits_after([*context, *prefix]).tolist()


def test_the_last_rows_of_a_text_are_those_after_each_of_its_last_tokens() -> None:
    model = ScriptedModel(VOCABULARY, seed=3)
    rows = make_source(model).read_last([4, 3, 2, 1], 3)
    expected = [model.logits_after([4, 3, 2, 1][:length]).tolist() for length in (2, 3, 4)]
    assert [row.tolist() for row in rows] == expected
    assert len(make_source(model).read_last([4, 3], 9)) == 2


def test_what_a_draft_model_has_beyond_the_targets_vocabulary_is_cut_off() -> None:
    source = make_source(ScriptedModel(VOCABULARY + 3), VOCABULARY)
    assert all(len(row) == VOCABULARY for row in (*source.read([1], [()]).values(), *source.read_last([1, 2], 2)))


def test_disturbed_logits_differ_by_normal_noise_that_repeats_itself() -> None:
    model = ScriptedModel(4000, seed=3)
    source = make_source(model, 4000)
    disturbed = DisturbedSource(source).read([1], [(), (2,)])
    noise = {prefix: disturbed[prefix] - row for prefix, row in source.read([1], [(), (2,)]).items()}
    for values in noise.values():
        assert values.mean() == pytest.approx(0.0, abs=0.08)
        assert values.std() == pytest.approx(1.0, abs=0.05)
    assert abs(np.corrcoef(noise[()], noise[(2,)])[0, 1]) < 0.08
    assert disturb(disturbed[()], (1,)).tolist() == disturb(disturbed[()], (1,)).tolist()


def test_a_table_is_a_model_behind_a_first_token() -> None:
    rows = {prefix: np.full(12, sum(prefix), np.float32) for prefix in PREFIXES}
    target = TableModel(rows).open(8)
    assert target.forward(Rows.chain([11, 5, 9]))[:, 0].tolist() == [0.0, 5.0, 14.0]
    target.commit([0, 1])
    assert target.forward(Rows.chain([0]))[0, 0] == 5.0
    target.rewind(0)
    tree = Rows(np.array([11, 2, 5, 0], np.int32), np.array([-1, 0, 0, 1], np.int32))
    assert target.forward(tree)[:, 0].tolist() == [0.0, 2.0, 5.0, 2.0]


def test_shrunk_tables_have_the_same_laws() -> None:
    random = np.random.default_rng(8)
    rows = {prefix: random.normal(size=500).astype(np.float32) * 3 for prefix in PREFIXES}
    for row in rows.values():
        row[[0, 2, 5, 9]] = 20  # what prefixes are made of is likely
    (small, other), ids = shrink((rows, {prefix: -row for prefix, row in rows.items()}), 12)
    shaper = Shaper(SamplingParams(temperature=0.8, top_k=12, top_p=0.95))
    assert len(ids) < 200
    assert set(np.diff(ids) > 0) == {True}
    assert set(other) == set(small)
    for prefix, row in rows.items():
        number = {token: index for index, token in enumerate(ids.tolist())}
        law = shaper.law(small[tuple(number[token] for token in prefix)], History())
        whole = shaper.law(row, History())
        assert whole.ids is not None
        assert law.ids is not None
        assert ids[law.ids].tolist() == whole.ids.tolist()
        assert law.probabilities.tolist() == whole.probabilities.tolist()
