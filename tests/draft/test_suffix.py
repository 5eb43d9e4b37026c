from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from borrador.draft.history import History
from borrador.draft.protocol import Hinting
from borrador.draft.suffix import SuffixDrafter, SuffixSession
from borrador.sampling.shaping import Shaper
from borrador.types import SamplingParams

contexts = st.lists(st.integers(0, 3), min_size=1, max_size=80)


def history_of(folder: Path, *answers: Sequence[int]) -> History:
    history = History("test", "0" * 64, folder=folder)
    for answer in answers:
        history.remember(answer)
    return history


def test_copies_what_followed_the_longest_match() -> None:
    context = [1, 2, 3, 7, 0, 2, 3, 8, 0, 1, 2, 3]
    assert SuffixSession().propose(context, 2).tokens == (7, 0)


def test_repetition_is_drafted_in_full() -> None:
    draft = SuffixSession().propose([9, *[1, 2] * 8], 6)
    assert (draft.tokens, draft.parents, draft.drafter) == ((1, 2, 1, 2, 1, 2), None, "suffix")


def test_nothing_is_proposed_without_a_match_or_a_budget() -> None:
    session = SuffixSession()
    for context, budget in (([1, 2, 3, 4], 4), ([1, 2, 3, 4, 1, 2], 0), ([1, 2, 3, 4, 1, 2], -1)):
        draft = session.propose(context, budget)
        assert (draft.tokens, draft.parents, draft.drafter) == ((), None, "suffix")


def test_path_ends_where_the_evidence_does() -> None:
    fan = [token for follower in range(20, 40) for token in (5, follower)]
    context = [*fan, 1, 2, 3, 5, 9, 1, 2]
    draft = SuffixSession().propose(context, 10)
    assert draft.tokens[:2] == (3, 5)
    assert SuffixSession().propose([*fan, 5], 10).tokens == ()  # twenty followers, each seen once


def test_match_that_went_on_differently_gives_a_tree() -> None:
    context = [8, 1, 2, 3, 4, 9, 1, 2, 5, 6, 7, 1, 2, 3, 4, 0, 1, 2]
    tree = SuffixSession().propose(context, 8)
    assert tree.parents is not None
    top = [token for token, parent in zip(tree.tokens, tree.parents, strict=True) if parent == -1]
    assert top == [3, 5]  # twice, once
    assert tree.tokens[tree.parents.index(tree.tokens.index(5))] == 6
    chain = SuffixSession(tree=False).propose(context, 8)
    assert (chain.tokens[:2], chain.parents) == ((3, 4), None)


@given(contexts, st.integers(1, 15), st.booleans(), st.data())
def test_drafts_are_well_formed_however_the_context_grew(
    context: list[int], budget: int, tree: bool, data: st.DataObject
) -> None:
    session, grown = SuffixSession(tree=tree), 0
    while grown < len(context):
        grown = data.draw(st.integers(grown + 1, len(context)))
        draft = session.propose(context[:grown], budget)
        assert (
            draft
            == session.propose(context[:grown], budget)
            == SuffixSession(tree=tree).propose(context[:grown], budget)
        )
        assert len(draft.tokens) == len(draft.confidence) <= budget
        assert draft.q is None
        assert all(0.2 <= confidence < 1.0 for confidence in draft.confidence)
        assert set(draft.tokens) <= set(context[:grown])
        if draft.parents is not None:
            assert tree
            assert all(-1 <= parent < index for index, parent in enumerate(draft.parents))
            assert draft.parents != tuple(range(-1, len(draft.tokens) - 1))
            assert len({*zip(draft.parents, draft.tokens, strict=True)}) == len(draft.tokens)


@given(contexts, st.lists(st.integers(0, 3), max_size=6), st.integers(0, 6))
def test_hint_is_what_a_chain_would_hold_after_the_path(context: list[int], path: list[int], count: int) -> None:
    session, undisturbed = SuffixSession(), SuffixSession()
    assert isinstance(session, Hinting)
    before = session.propose(context, 8)
    hint = session.hint(context, path, count)
    assert len(hint) <= count
    if not path:
        assert hint == SuffixSession(tree=False).propose(context, count).tokens
    assert session.propose(context, 8) == before
    grown = [*context, 1, 2, 1]
    assert session.propose(grown, 8) == undisturbed.propose(grown, 8)


def test_hint_follows_the_path() -> None:
    context = [1, 2, 3, 4, 5, 6, 0, 1, 2]
    assert SuffixSession().hint(context, (3, 4), 3) == (5, 6, 0)
    assert SuffixSession().hint(context, (5,), 2) == (6, 0)
    assert SuffixSession().hint(context, (9,), 2) == ()


def test_tokens_beyond_the_capacity_are_matched_and_not_learnt() -> None:
    session = SuffixSession(capacity=4)
    assert session.propose([1, 2, 3, 4, 7, 8, 7], 3).tokens == ()
    assert session.propose([1, 2, 3, 4, 7, 8, 7, 1, 2], 3).tokens == (3, 4)


def test_sessions_share_nothing_without_a_history() -> None:
    drafter = SuffixDrafter()
    first, second = drafter.open(Shaper(SamplingParams())), drafter.open(Shaper(SamplingParams()))
    assert first.propose([1, 2, 3, 1, 2], 1).tokens == (3,)
    first.observe([3])
    first.close()
    assert second.propose([1, 2], 1).tokens == ()
    drafter.close()


def test_answers_are_remembered_for_later_requests(tmp_path: Path) -> None:
    drafter = SuffixDrafter(history_of(tmp_path))
    first = drafter.open(Shaper(SamplingParams()))
    first.observe([5, 6])
    first.observe([7, 8])
    assert drafter.open(Shaper(SamplingParams())).propose([1, 5, 6], 4).tokens == ()
    first.close()
    later = drafter.open(Shaper(SamplingParams()))
    assert later.propose([1, 5, 6], 4).tokens == (7, 8)
    assert later.hint([1, 5, 6], (7,), 4) == (8,)
    drafter.close()
    assert history_of(tmp_path).automaton.length == 5


def test_history_is_copied_where_it_has_the_longer_match(tmp_path: Path) -> None:
    history = history_of(tmp_path, [1, 2, 3, 4])
    assert SuffixSession(history).propose([3, 9, 0, 2, 3], 1).tokens == (4,)
    assert SuffixSession(history).propose([2, 3, 9, 0, 2, 3], 1).tokens == (9,)  # equally long, and the request's own


def test_answers_of_other_requests_in_the_meantime_do_no_harm(tmp_path: Path) -> None:
    history = history_of(tmp_path, [1, 2, 3, 4])
    session = SuffixSession(history)
    assert session.propose([0, 1, 2], 2).tokens == (3, 4)
    for answer in ([2, 9, 1, 2, 3], [3, 3, 3, 1, 2, 3, 4]):
        history.remember(answer)
    assert session.propose([0, 1, 2, 3], 1).tokens == (4,)


@pytest.mark.parametrize("tree", [False, True])
def test_drafting_costs_no_time_of_a_model(tree: bool) -> None:
    drafter = SuffixDrafter(tree=tree)
    assert drafter.price() == (0.0, 0.0)
    assert drafter.open(Shaper(SamplingParams())).unread([1, 2, 3]) == 0
