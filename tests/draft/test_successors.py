from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from borrador.draft.successors import SuccessorTable, last_of

TOKENS = st.integers(0, 3)
TAILS = st.lists(TOKENS, min_size=1, max_size=3).map(tuple)


def test_a_tail_is_the_last_three_tokens_or_fewer() -> None:
    assert last_of([1, 2, 3, 4]) == (2, 3, 4)
    assert last_of([7]) == (7,)
    assert last_of([]) == ()


def test_nothing_follows_what_was_never_met() -> None:
    table = SuccessorTable()
    table.learn((1, 2, 3), ((4, 1.0),))
    assert table.following((9, 9, 9)) == {}
    assert table.following(()) == {}


def test_what_was_learnt_behind_a_tail_follows_all_of_its_ends() -> None:
    """Of three tokens half is believed, of two 0.6 of the rest, of one 0.5 of what is left then."""
    table = SuccessorTable()
    table.learn((1, 2, 3), ((4, 0.75), (5, 0.25)))
    assert table.following((1, 2, 3)) == pytest.approx({4: 0.9 * 0.75, 5: 0.9 * 0.25})
    assert table.following((9, 2, 3)) == pytest.approx({4: 0.8 * 0.75, 5: 0.8 * 0.25})
    assert table.following((3,)) == pytest.approx({4: 0.5 * 0.75, 5: 0.5 * 0.25})


def test_longer_tails_are_believed_first() -> None:
    table = SuccessorTable()
    table.learn((1, 2), ((4, 1.0),))
    table.learn((9, 2), ((5, 1.0),))
    assert table.following((1, 2)) == pytest.approx({4: 0.6, 5: 0.4 * 0.5})
    assert table.following((9, 2)) == pytest.approx({5: 0.6 + 0.4 * 0.5})


def test_what_a_model_held_likely_is_replaced_by_what_it_holds_likely_later() -> None:
    table = SuccessorTable()
    table.learn((1,), ((4, 1.0),))
    table.learn((1,), ((5, 1.0),))
    assert set(table.following((1,))) == {5}


def test_copies_are_believed_less_and_never_replace_what_a_model_held_likely() -> None:
    table = SuccessorTable()
    table.copy((1, 2, 3), 4)
    table.copy((1, 2, 3), 5)
    assert table.following((1, 2, 3)) == pytest.approx({5: 0.5 + 0.5 * 0.4 + 0.5 * 0.6 * 0.2})
    table.learn((2, 3), ((6, 1.0),))
    table.copy((1, 2, 3), 7)
    assert table.following((1, 2, 3)) == pytest.approx({7: 0.5, 6: 0.5 * 0.6 + 0.5 * 0.4 * 0.5})


def test_the_oldest_tails_are_forgotten_and_the_newest_never() -> None:
    table = SuccessorTable(most=4)
    for token in range(50):
        table.learn((token,), ((token + 1, 1.0),))
        assert all(table.following((known,)) for known in range(max(0, token - 3), token + 1))
        assert len(table) <= 8
    assert not any(table.following((token,)) for token in range(42))


def test_learning_a_known_tail_again_forgets_nothing() -> None:
    table = SuccessorTable(most=2)
    table.learn((1,), ((2, 1.0),))
    table.learn((2,), ((3, 1.0),))
    for _ in range(9):
        table.learn((2,), ((4, 1.0),))
    assert table.following((1,)) == {2: 0.5}


def test_a_cleared_table_is_empty() -> None:
    table = SuccessorTable(most=1)
    for token in range(3):
        table.copy((token,), 1)
    table.clear()
    assert len(table) == 0
    assert table.following((2,)) == {}


@given(st.lists(st.tuples(TAILS, TOKENS, st.booleans()), max_size=40), TAILS)
def test_probabilities_never_sum_to_one(learnt: list[tuple[tuple[int, ...], int, bool]], tail: tuple[int, ...]) -> None:
    table = SuccessorTable()
    for key, token, copied in learnt:
        if copied:
            table.copy(key, token)
        else:
            table.learn(key, ((token, 0.7), (token + 1, 0.3)))
    following = table.following(tail)
    assert all(probability > 0.0 for probability in following.values())
    assert sum(following.values()) < 0.9 + 1e-9
