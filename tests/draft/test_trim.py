from __future__ import annotations

import numpy as np
import pytest
from tests.grammar.shapes import open_matcher
from tests.scripted import END, VOCABULARY, ids

from borrador.draft.trim import end_draft, trim
from borrador.grammar.matcher import Matcher
from borrador.types import Draft, SamplingParams

START = 3
CONTEXT = [7, 7, 7, *ids("a")]


@pytest.fixture
def grammar() -> Matcher:
    """Behind a prompt of three tokens and an `a`, `b` and then `c` or `d` may follow, twice."""
    matcher = open_matcher(SamplingParams(regex="a(b(c|d)){2}"), start=START)
    matcher.commit(0)
    return matcher


def laws(count: int) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    return np.random.default_rng(3).random((count, VOCABULARY), np.float32)


@pytest.mark.parametrize(
    ("proposed", "kept"),
    [("bcbd", "bcbd"), ("bcbdo", "bcbd"), ("bb", "b"), ("cb", ""), ("bcbd!", "bcbd"), ("b!", "b"), ("", "")],
)
def test_a_chain_ends_before_the_first_token_that_is_refused(grammar: Matcher, proposed: str, kept: str) -> None:
    confidence = tuple(0.9 - 0.1 * index for index in range(len(proposed)))
    draft = Draft(tokens=tuple(ids(proposed)), drafter="some", confidence=confidence)
    assert trim(draft, CONTEXT, grammar) == Draft(
        tokens=tuple(ids(kept)), drafter="some", confidence=confidence[: len(kept)]
    )


@pytest.mark.parametrize(("proposed", "kept"), [("bcbd", "bcbd"), ("bbcc", "bb"), ("cb", "c"), ("bcbd!", "bcbd!")])
def test_of_a_drawn_chain_the_refused_token_stays(grammar: Matcher, proposed: str, kept: str) -> None:
    q = laws(len(proposed))
    trimmed = trim(Draft(tokens=tuple(ids(proposed)), q=q), CONTEXT, grammar)
    assert trimmed.tokens == tuple(ids(kept))
    assert trimmed.q is not None
    assert np.array_equal(trimmed.q, q[: len(kept)])


def test_a_tree_loses_what_is_refused_and_all_below(grammar: Matcher) -> None:
    tokens, parents = tuple(ids("cbcbdbo")), (-1, -1, 0, 1, 1, 4, 4)
    trimmed = trim(Draft(tokens=tokens, parents=parents, confidence=tuple(map(float, range(7)))), CONTEXT, grammar)
    assert trimmed.tokens == tuple(ids("bdb"))
    assert trimmed.parents == (-1, 0, 1)
    assert trimmed.confidence == (1.0, 4.0, 5.0)


def test_a_drawn_tree_keeps_refused_tokens_without_what_is_below_and_the_laws_of_their_parents(
    grammar: Matcher,
) -> None:
    tokens, parents = tuple(ids("cbcbdbo")), (-1, -1, 0, 1, 1, 4, 3)
    q = laws(len(tokens))
    trimmed = trim(Draft(tokens=tokens, parents=parents, q=q), CONTEXT, grammar)
    assert trimmed.tokens == tuple(ids("cbbdb"))
    assert trimmed.parents == (-1, -1, 1, 1, 3)
    assert trimmed.q is not None
    # Row 0 is the law of the first two, row 2 of the children of the first b, row 4 of those of d.
    assert np.array_equal(trimmed.q[[0, 2, 4]], q[[0, 2, 5]])


def test_a_draft_that_is_allowed_stays_as_it_is(grammar: Matcher) -> None:
    chain = Draft(tokens=tuple(ids("bcbd")))
    tree = Draft(tokens=(*ids("bcd"), END), parents=(-1, 0, 0, 1), confidence=(0.5,) * 4)
    assert trim(chain, CONTEXT, grammar) is chain
    assert trim(tree.first(3), CONTEXT, grammar) == tree.first(3)
    assert trim(tree, CONTEXT, grammar) == tree.first(3)


def test_nothing_is_kept_behind_a_token_that_ends_the_answer() -> None:
    chain = Draft(tokens=(5, 9, 6, 9, 7), drafter="some", confidence=(0.5, 0.4, 0.3, 0.2, 0.1))
    assert end_draft(chain, {9}) == Draft(tokens=(5, 9), drafter="some", confidence=(0.5, 0.4))
    assert end_draft(chain, {8}) is chain
    tree = Draft(tokens=(9, 5, 6, 9, 7, 8), parents=(-1, -1, 0, 1, 3, 1), drafter="some")
    assert end_draft(tree, {9}) == Draft(tokens=(9, 5, 9, 8), parents=(-1, -1, 1, 1), drafter="some")
