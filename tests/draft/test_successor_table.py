"""The native table of successors: right values, and the trees of a plain version of it."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.recycle_reference import SUCCESSORS, ReferenceTable

from borrador import _native
from borrador.types import Float32Array, Int32Array

MANY = 1 << 16
Row = Sequence[tuple[int, float]]


def rows_of(*rows: Row, columns: int = SUCCESSORS) -> tuple[Int32Array, Float32Array]:
    """Rows of (token, probability), most likely first, as a pass gives them."""
    ids = np.full((len(rows), columns), -1, np.int32)
    logits = np.full((len(rows), columns), -np.inf, np.float32)
    for index, row in enumerate(rows):
        for rank, (token, probability) in enumerate(row):
            ids[index, rank], logits[index, rank] = token, np.log(probability)
    return ids, logits


def learn(table: _native.SuccessorTable, tail: Sequence[int], *successors: tuple[int, float]) -> None:
    """Learn what follows a context."""
    table.learn(tail, (), None, *rows_of(successors))


def table_that_read(*contexts: Sequence[int]) -> _native.SuccessorTable:
    """A table that has copied what followed what in the last of these, each a beginning of the next."""
    table = _native.SuccessorTable(MANY)
    for context in contexts:
        table.grow(context, 0)
    return table


def following(table: _native.SuccessorTable, *tail: int) -> dict[int, float]:
    return dict(table.following(tail))


def test_nothing_follows_what_was_never_met() -> None:
    table = _native.SuccessorTable(MANY)
    assert table.grow([], 4) == table.grow([1], 4) == table.grow([1, 2, 3, 4], 4) == ((), (), ())
    learn(table, [1, 2, 3], (4, 1.0))
    assert following(table, 9, 9, 9) == following(table) == {}
    assert table.follow([], (), 3) == ()


def test_what_was_learnt_behind_a_tail_follows_all_of_its_ends() -> None:
    """Of three tokens half is believed, of two 0.6 of the rest, of one 0.5 of what is left then."""
    table = _native.SuccessorTable(MANY)
    learn(table, [1, 2, 3], (4, 0.75), (5, 0.25))
    assert following(table, 1, 2, 3) == pytest.approx({4: 0.9 * 0.75, 5: 0.9 * 0.25})
    assert following(table, 9, 2, 3) == pytest.approx({4: 0.8 * 0.75, 5: 0.8 * 0.25})
    assert following(table, 3) == pytest.approx({4: 0.5 * 0.75, 5: 0.5 * 0.25})


def test_a_tail_is_the_last_three_tokens() -> None:
    table = _native.SuccessorTable(MANY)
    learn(table, [8, 1, 2, 3], (4, 1.0))
    assert following(table, 7, 1, 2, 3) == following(table, 1, 2, 3)


def test_a_short_tail_is_not_one_that_begins_with_token_0() -> None:
    table = _native.SuccessorTable(MANY)
    learn(table, [5], (4, 1.0))
    assert following(table, 0, 0, 5) == pytest.approx({4: 0.5})
    learn(table, [0, 0, 6], (7, 1.0))
    assert following(table, 6) == pytest.approx({7: 0.5})


def test_longer_tails_are_believed_first() -> None:
    table = _native.SuccessorTable(MANY)
    learn(table, [1, 2], (4, 1.0))
    learn(table, [9, 2], (5, 1.0))
    assert following(table, 1, 2) == pytest.approx({4: 0.6, 5: 0.4 * 0.5})
    assert following(table, 9, 2) == pytest.approx({5: 0.6 + 0.4 * 0.5})


def test_what_a_model_held_likely_is_replaced_by_what_it_holds_likely_later() -> None:
    table = _native.SuccessorTable(MANY)
    learn(table, [1], (4, 0.6), (6, 0.4))
    learn(table, [1], (5, 1.0))
    assert following(table, 1) == pytest.approx({5: 0.5})


def test_copies_are_believed_less_and_never_replace_what_a_model_held_likely() -> None:
    table = table_that_read([1, 2, 3, 4], [1, 2, 3, 4, 9, 1, 2, 3, 5])
    assert following(table, 1, 2, 3) == pytest.approx({5: 0.5 + 0.5 * 0.4 + 0.5 * 0.6 * 0.2})
    learn(table, [2, 3], (6, 1.0))
    table.grow([1, 2, 3, 4, 9, 1, 2, 3, 5, 1, 2, 3, 7], 0)
    assert following(table, 1, 2, 3) == pytest.approx({7: 0.5, 6: 0.5 * 0.6 + 0.5 * 0.4 * 0.5})


def test_each_token_of_a_context_is_read_once() -> None:
    table = table_that_read([1, 2, 3], [1, 2, 3, 4])
    assert len(table) == 3 + 3  # (1), (1 2), (2); (1 2 3), (2 3), (3)
    table.grow([9, 9, 9, 9], 0)
    assert len(table) == 6
    table.follow([9, 9, 9, 9, 5], (), 0)
    assert len(table) == 9


def test_a_long_context_is_read_to_its_end() -> None:
    context = [*range(5000), 7]
    assert table_that_read(context).follow(context, (), 3) == (8, 9, 10)


def test_the_oldest_tails_are_forgotten_and_the_newest_never() -> None:
    table = _native.SuccessorTable(4)
    for token in range(50):
        learn(table, [token], (token + 1, 1.0))
        assert all(table.following([known]) for known in range(max(0, token - 3), token + 1))
        assert len(table) <= 8
    assert not any(table.following([token]) for token in range(42))


def test_learning_a_known_tail_again_forgets_nothing() -> None:
    table = _native.SuccessorTable(2)
    learn(table, [1], (2, 1.0))
    learn(table, [2], (3, 1.0))
    for _ in range(9):
        learn(table, [2], (4, 1.0))
    assert following(table, 1) == {2: 0.5}


def test_a_cleared_table_is_empty() -> None:
    table = _native.SuccessorTable(1)
    for token in range(3):
        learn(table, [token], (1, 1.0))
    table.clear()
    assert len(table) == 0
    assert following(table, 2) == {}


def test_rows_may_lie_apart_and_hold_more_than_is_learnt() -> None:
    ids, logits = rows_of([(4, 0.5), (5, 0.3), (6, 0.2)], [(7, 1.0)], columns=40)
    table, wide = _native.SuccessorTable(MANY), np.zeros((2, 80), np.float32)
    wide[:, ::2] = logits
    table.learn([1], [2], None, ids, wide[:, ::2])
    assert following(table, 1) == pytest.approx({4: 0.25, 5: 0.15, 6: 0.1})
    assert following(table, 2) == pytest.approx({7: 0.5})


@pytest.mark.parametrize(
    ("tokens", "parents", "rows", "columns", "rule"),
    [
        ((1, 2), None, 2, 8, "every token needs a row"),
        ((1, 2), (-1,), 3, 8, "every token needs one parent"),
        ((1, 2), (-1, 1), 3, 8, "a parent must come before its token"),
        ((1, 2), (-2, 0), 3, 8, "a parent must come before its token"),
        ((), None, 1, 0, "every successor needs a logit"),
    ],
)
def test_rows_that_do_not_fit_to_their_draft_are_refused(
    tokens: tuple[int, ...], parents: tuple[int, ...] | None, rows: int, columns: int, rule: str
) -> None:
    table = _native.SuccessorTable(MANY)
    ids = np.ones((rows, columns), np.int32)
    with pytest.raises(ValueError, match=rule):
        table.learn([1], tokens, parents, ids, ids.astype(np.float32))
    assert len(table) == 0


@pytest.mark.parametrize("most", [0, 1 << 30])
def test_tables_of_no_tails_or_too_many_are_refused(most: int) -> None:
    with pytest.raises(ValueError, match=r"from 1 to 2\^30 - 1 tails"):
        _native.SuccessorTable(most)


def test_threads_may_share_a_table() -> None:
    table, context = _native.SuccessorTable(500), [*range(3000)] * 4
    ids, logits = rows_of([(1, 0.6), (2, 0.4)])
    found: list[tuple[int, ...]] = []

    def work(seed: int) -> None:
        for length in range(2 + seed, len(context), 1500):
            table.grow(context[:length], 8)
            table.learn(context[:length], (), None, ids, logits)
        found.append(table.follow([3, 2999], (), 1))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert len(table) <= 2 * (500 + 3)


class Step(NamedTuple):
    """A round: a draft below the context is verified, its rows are learnt, and something is committed."""

    draft: list[tuple[int, int]]
    rows: list[list[tuple[int, float]]]
    committed: list[int]
    budget: int


TOKENS = st.integers(0, 3)
# Few different probabilities, so that equal ones meet.
ROWS = st.lists(
    st.tuples(st.integers(0, 9), st.sampled_from([0.001, 0.0101, 0.1, 0.3, 0.5, 1.0])),
    max_size=12,
    unique_by=lambda entry: entry[0],
)
STEPS = st.builds(
    Step,
    st.lists(st.tuples(TOKENS, st.integers(-1, 5)), max_size=6),
    st.lists(ROWS, min_size=7, max_size=7),
    st.lists(TOKENS, max_size=4),
    st.integers(0, 20),
)


@given(st.lists(TOKENS, max_size=9), st.lists(STEPS, max_size=12), st.integers(1, 30), st.booleans())
def test_trees_and_hints_are_those_of_the_plain_version(
    prompt: list[int], steps: list[Step], most: int, chains: bool
) -> None:
    table, reference, context = _native.SuccessorTable(most), ReferenceTable(most), list(prompt)
    for step in steps:
        tokens = [token for token, _ in step.draft]
        parents = None if chains else [min(parent, index - 1) for index, (_, parent) in enumerate(step.draft)]
        rows = [sorted(row, key=lambda entry: (-entry[1], entry[0])) for row in step.rows[: len(tokens) + 1]]
        ids, logits = rows_of(*rows, columns=12)
        table.learn(context, tokens, parents, ids, logits)
        reference.learn(context, tokens, parents, ids.tolist(), logits.tolist())
        context += step.committed
        grown, expected = table.grow(context, step.budget), reference.grow(context, step.budget)
        assert grown[:2] == expected[:2]
        assert grown[2] == pytest.approx(expected[2], abs=1e-6)
        assert table.follow(context, tokens, 5) == reference.follow(context, tokens, 5)
        assert len(table) == len(reference)
        for tail in (context[-3:], tokens[-3:]):
            found, wanted = table.following(tail), reference.following(tuple(tail))
            assert [token for token, _ in found] == list(wanted)
            assert dict(found) == pytest.approx(wanted, abs=1e-9)
            assert sum(probability for _, probability in found) < 0.9 + 1e-9
