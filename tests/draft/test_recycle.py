from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from borrador.draft.protocol import Hinting, SuccessorLearner
from borrador.draft.recycle import SUCCESSORS, RecycleDrafter, RecycleSession
from borrador.models.target import BestTokens
from borrador.sampling.shaping import Shaper
from borrador.types import Draft, SamplingParams

VOCABULARY = 6
EMPTY = Draft()


def best_of(*rows: Sequence[tuple[int, float]]) -> BestTokens:
    """Rows of (token, probability), most likely first."""
    ids = np.full((len(rows), SUCCESSORS), -1, np.int32)
    logits = np.full((len(rows), SUCCESSORS), -np.inf, np.float32)
    for index, row in enumerate(rows):
        for rank, (token, probability) in enumerate(row):
            ids[index, rank], logits[index, rank] = token, np.log(probability)
    return BestTokens(ids, logits, np.empty(0, np.float32))


def test_a_session_learns_from_passes_and_gives_hints() -> None:
    session = RecycleDrafter().open(Shaper(SamplingParams()))
    assert isinstance(session, SuccessorLearner)
    assert isinstance(session, Hinting)
    assert session.successors == SUCCESSORS == 8


def test_nothing_is_proposed_before_anything_is_known() -> None:
    session = RecycleSession()
    assert session.propose([], 4).tokens == ()
    assert session.propose([1], 4).tokens == ()
    assert session.propose([1, 2, 3], 4).tokens == ()
    assert session.hint([1, 2, 3], (), 4) == ()


def test_the_tree_holds_the_likeliest_paths_best_first() -> None:
    """Behind 1 come 2 (0.7) and 3 (0.3), behind 2 comes 4, behind 3 comes 5; each is believed by half."""
    session = RecycleSession()
    session.learn_successors([1], EMPTY, best_of([(2, 0.7), (3, 0.3)]))
    session.learn_successors([2], EMPTY, best_of([(4, 1.0)]))
    session.learn_successors([3], EMPTY, best_of([(5, 1.0)]))
    draft = session.propose([1], 9)
    assert draft.tokens == (2, 4, 3, 5)  # 0.35, 0.175, 0.15, 0.075
    assert draft.parents == (-1, 0, -1, 2)
    assert draft.drafter == "recycle"
    assert draft.q is None
    assert draft.confidence == pytest.approx((0.35, 0.5, 0.15, 0.5))
    assert session.propose([1], 3).tokens == (2, 4, 3)
    assert session.propose([1], 0).tokens == ()


def test_refused_rows_teach_what_follows_their_own_path() -> None:
    """Row 0 follows the context, and the rows of two siblings and of a child of the second their own paths."""
    session = RecycleSession()
    draft = Draft(tokens=(1, 2, 3), parents=(-1, -1, 1))
    session.learn_successors([5], draft, best_of([(0, 1.0)], [(1, 1.0)], [(2, 1.0)], [(4, 1.0)]))
    assert session.hint([5], (), 1) == (0,)
    assert session.hint([5], (1,), 1) == (1,)
    assert session.hint([5], (2,), 1) == (2,)
    assert session.hint([5], (2, 3), 1) == (4,)
    assert session.hint([0, 2, 3], (), 1) == (4,)


def test_what_the_context_says_is_copied_until_the_target_says_otherwise() -> None:
    session = RecycleSession()
    context = [1, 2, 3, 1, 2]
    assert session.propose(context, 2).tokens == (3, 1)
    session.learn_successors(context, EMPTY, best_of([(4, 0.9), (3, 0.1)]))
    assert session.propose(context, 1).tokens == (4,)


def test_tokens_that_are_hardly_likely_are_not_learnt() -> None:
    session = RecycleSession()
    session.learn_successors([1], EMPTY, best_of([(2, 0.995), (3, 0.005)]))
    assert session.propose([1], 9).tokens == (2,)


def test_rows_that_have_no_successors_teach_nothing() -> None:
    session = RecycleSession()
    session.learn_successors([1], Draft(tokens=(2,)), best_of([], [(3, 1.0)]))
    assert session.propose([1], 9).tokens == ()
    assert session.propose([1, 2], 9).tokens == (3,)


def test_more_tokens_than_wanted_are_ignored() -> None:
    ids = np.arange(20, dtype=np.int32)[np.newaxis]
    session = RecycleSession()
    session.learn_successors([30], EMPTY, BestTokens(ids, np.zeros((1, 20), np.float32), np.empty(0, np.float32)))
    assert session.propose([30], 64).tokens == tuple(range(SUCCESSORS))


def test_requests_share_nothing() -> None:
    drafter, shaper = RecycleDrafter(), Shaper(SamplingParams())
    first = drafter.open(shaper)
    first.learn_successors([1], EMPTY, best_of([(2, 1.0)]))
    assert drafter.open(shaper).propose([1], 4).tokens == ()
    first.close()
    assert first.propose([1], 4).tokens == ()


def test_a_hint_goes_on_with_the_likeliest_token_and_changes_nothing() -> None:
    session = RecycleSession()
    session.learn_successors([1], EMPTY, best_of([(2, 0.7), (3, 0.3)]))
    session.learn_successors([2], EMPTY, best_of([(1, 1.0)]))
    before = session.propose([9, 1], 9)
    assert session.hint([9, 1], (), 5) == (2, 1, 2, 1, 2)
    assert session.hint([9, 1], (2,), 1) == (1,)
    assert session.hint([9, 1], (5,), 3) == ()
    assert session.hint([9, 1], (), 0) == ()
    assert session.propose([9, 1], 9) == before


TOKENS = st.integers(0, VOCABULARY - 1)
ROWS = st.lists(st.tuples(TOKENS, st.floats(0.001, 1.0)), max_size=SUCCESSORS, unique_by=lambda entry: entry[0])


@given(st.lists(TOKENS, min_size=1, max_size=12), st.lists(ROWS, min_size=12, max_size=12), st.integers(0, 20))
def test_trees_are_well_formed(context: list[int], rows: list[list[tuple[int, float]]], budget: int) -> None:
    session = RecycleSession()
    for length in range(1, len(context)):
        row = sorted(rows[length], key=lambda entry: -entry[1])
        session.learn_successors(context[:length], EMPTY, best_of(row))
    draft = session.propose(context, budget)
    assert draft.parents is not None or not draft.tokens
    assert len(draft.tokens) == len(draft.confidence) == len(draft.parents or ()) <= budget
    places = list(zip(draft.parents or (), draft.tokens, strict=True))
    assert len(set(places)) == len(places)
    assert all(-1 <= parent < index for index, (parent, _) in enumerate(places))
    assert all(0.0 < confidence < 1.0 for confidence in draft.confidence)
    survival: list[float] = []
    for parent, confidence in zip(draft.parents or (), draft.confidence, strict=True):
        survival.append(confidence * (survival[parent] if parent >= 0 else 1.0))
    assert survival == pytest.approx(sorted(survival, reverse=True))
    assert session.propose(context, budget) == draft
    shorter = session.propose(context, budget // 2)
    assert shorter == draft.first(budget // 2) or not shorter.tokens
