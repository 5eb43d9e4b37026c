"""A draft model under a grammar: it drafts what is allowed, and what is forced costs it nothing."""

from __future__ import annotations

import re

import numpy as np
import pytest
from tests.grammar.shapes import open_matcher
from tests.scripted import END, LETTERS, VOCABULARY

from borrador.draft.model import ModelDrafter
from borrador.draft.protocol import CERTAIN
from borrador.models.scripted import ScriptedModel, ScriptedTarget
from borrador.sampling.shaping import Shaper
from borrador.types import SamplingParams


def drafter_of(model: ScriptedModel) -> ModelDrafter:
    return ModelDrafter("small", model, context_length=64, vocabulary_size=VOCABULARY, end_ids=frozenset({END}))


def test_tokens_that_a_grammar_forces_cost_no_step_and_are_evaluated_together() -> None:
    model = ScriptedModel(VOCABULARY, seed=3)
    matcher = open_matcher(SamplingParams(regex="(a|b)cdef(g|h)ij"), start=2)
    session = drafter_of(model).open(Shaper(SamplingParams(), masks=matcher))
    asked: list[float] = []

    def go_on(confidence: float) -> bool:
        asked.append(confidence)
        return True

    draft = session.propose([14, 13], 9, go_on)
    letters = "".join(LETTERS[token] for token in draft.tokens)
    assert re.fullmatch("(a|b)cdef(g|h)ij", letters)
    assert [confidence == CERTAIN for confidence in draft.confidence] == [letter in "cdefij" for letter in letters]
    assert asked == list(draft.confidence)
    assert 0.0 < draft.confidence[0] < 1.0
    target = session._target
    assert isinstance(target, ScriptedTarget)
    assert [len(rows.tokens) for rows in target.passes] == [2, 5]  # the context; then one token and what it forces
    assert target.tokens == session._cached == [14, 13, *draft.tokens[:5]]


def test_drafts_of_a_shape_are_drawn_from_the_masked_law() -> None:
    model = ScriptedModel(VOCABULARY, seed=3)
    matcher = open_matcher(SamplingParams(regex="(a|b)(cd|ef)(a|b|c)*"), start=2)
    session = drafter_of(model).open(Shaper(SamplingParams(temperature=1.0), masks=matcher))
    draft = session.propose([14, 13], 4)
    assert draft.q is not None
    assert draft.q.shape == (4, VOCABULARY)
    weights = np.exp(model.logits_after([14, 13])[:2].astype(np.float64))
    assert draft.q[0, :2] == pytest.approx(weights / weights.sum(), rel=1e-5)
    assert draft.q[2, draft.tokens[2]] == 1.0
    assert set(np.flatnonzero(draft.q[3])) <= {0, 1, 2, END}
    assert draft.q.sum(1) == pytest.approx(1.0, rel=1e-5)


def test_the_confidence_of_a_token_is_its_share_of_what_is_allowed() -> None:
    model = ScriptedModel(VOCABULARY, seed=3)
    matcher = open_matcher(SamplingParams(regex="[a-c]o"), start=2)
    draft = drafter_of(model).open(Shaper(SamplingParams(), masks=matcher)).propose([14, 13], 1)
    weights = np.exp(model.logits_after([14, 13])[:3].astype(np.float64))
    assert draft.tokens == (int(weights.argmax()),)
    assert draft.confidence[0] == pytest.approx(weights.max() / weights.sum(), rel=1e-5)


def test_nothing_is_drafted_behind_the_end_of_a_shape() -> None:
    matcher = open_matcher(SamplingParams(regex="ab(c|d)"), start=2)
    session = drafter_of(ScriptedModel(VOCABULARY, seed=3)).open(Shaper(SamplingParams(), masks=matcher))
    assert len(session.propose([14, 13], 9).tokens) == 3
