from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from borrador.engine.candidates import LONGEST_DRAFT, Candidates, Load, Proposal, best_rows, choose
from borrador.types import Draft


def flat(rows: float) -> float:
    return 1.0 + 0.1 * (rows - 1.0)


def chain(name: str, tokens: Sequence[int], acceptance: Sequence[float]) -> Proposal:
    return Proposal(Draft(tokens=tuple(tokens), drafter=name), acceptance)


def test_drafts_that_agree_become_one_path_and_the_most_hopeful_is_believed() -> None:
    tree = Candidates.merge([chain("a", (1, 2, 3), (0.5, 0.8, 0.5)), chain("b", (1, 2, 4), (0.9, 0.6, 0.25))])
    assert tree.tokens == [1, 2, 3, 4]
    assert tree.parents == [-1, 0, 1, 1]
    assert tree.survival == pytest.approx([0.9, 0.72, 0.36, 0.18])
    assert tree.drafters == ["b", "a", "a", "b"]


def test_siblings_share_what_is_left_of_the_probability() -> None:
    tree = Candidates.merge([chain("a", (1,), (0.5,)), chain("b", (2,), (0.8,)), chain("c", (3,), (0.4,))])
    assert tree.survival == pytest.approx([0.2, 0.8, 0.0])


def test_a_tree_joins_a_chain() -> None:
    tree = Proposal(Draft(tokens=(7, 8, 9), parents=(-1, -1, 0), drafter="tree"), (0.6, 0.3, 0.5))
    merged = Candidates.merge([chain("chain", (7, 9, 5), (0.6, 0.5, 0.9)), tree])
    assert list(zip(merged.tokens, merged.parents, strict=True)) == [(7, -1), (9, 0), (5, 1), (8, -1)]


def test_rows_are_taken_while_they_bring_more_than_they_cost() -> None:
    """At 0.1 passes for a row, a row pays while its survival is above a tenth of the tokens of a pass, which grow."""
    assert best_rows([[0.5, 0.25, 0.125, 0.0625]], flat, Load()) == [[0, 1]]
    assert best_rows([[0.09, 0.08]], flat, Load()) == [[]]
    assert best_rows([[0.9] * 40], lambda rows: 1.0, Load())[0] == list(range(LONGEST_DRAFT))


def test_requests_share_the_rows_and_the_most_hopeful_tokens_come_first() -> None:
    """Nine requests and a pass that gets dear beyond eleven rows: two rows are left, for the two best tokens."""

    def edge(rows: float) -> float:
        return 1.0 + 10.0 * max(rows - 11.0, 0.0)

    survivals = [[0.5, 0.4], [0.9, 0.8], *([[0.3]] * 7)]
    assert best_rows(survivals, edge, Load(rows=9, requests=9)) == [[], [0, 1], *([[]] * 7)]


def test_a_draft_of_some_tokens_keeps_their_tree() -> None:
    tree = Candidates.merge([chain("a", (1, 2, 3), (0.9, 0.9, 0.9)), chain("b", (1, 5), (0.5, 0.1))])
    assert tree.take([0, 1]) == Draft(tokens=(1, 2), drafter="a")
    assert tree.take([0, 3, 1]) == Draft(tokens=(1, 2, 5), parents=(-1, 0, 0), drafter="a+b")
    assert tree.take([]) == Draft()


def test_whole_drafts_are_taken_beside_chosen_ones_and_their_rows_count() -> None:
    whole = Candidates(whole=Draft(tokens=(1,) * 10, drafter="fixed"))
    free = Candidates.merge([chain("a", (4, 5), (0.9, 0.9))])

    def edge(rows: float) -> float:
        return 1.0 if rows <= 12 else 100.0

    assert [draft.tokens for draft in choose([whole, free], edge, Load(2, 2))] == [(1,) * 10, ()]
    assert [draft.tokens for draft in choose([free, free], edge, Load(2, 2))] == [(4, 5), (4, 5)]
    assert [draft.tokens for draft in choose([whole, free], None, Load(2, 2))] == [(1,) * 10, ()]


@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 3), st.floats(0.0, 1.0)), max_size=6),
        max_size=4,
    ),
    st.floats(0.0, 0.5),
)
def test_what_is_chosen_is_a_tree_whose_survival_never_grows(
    chains: list[list[tuple[int, float]]], price: float
) -> None:
    proposals = [
        chain(str(number), [token for token, _ in tokens], [hope for _, hope in tokens])
        for number, tokens in enumerate(chains)
    ]
    tree = Candidates.merge(proposals)
    for index, parent in enumerate(tree.parents):
        assert parent < index
        assert tree.survival[index] <= (tree.survival[parent] if parent >= 0 else 1.0)
    assert len(set(zip(tree.parents, tree.tokens, strict=True))) == len(tree.tokens)
    children: dict[int, float] = {}
    for index, parent in enumerate(tree.parents):
        children[parent] = children.get(parent, 0.0) + tree.survival[index]
    assert all(total <= (tree.survival[parent] if parent >= 0 else 1.0) + 1e-9 for parent, total in children.items())
    (chosen,) = best_rows([tree.survival], lambda rows: 1.0 + price * (rows - 1.0), Load())
    assert all(tree.parents[index] in (-1, *chosen) for index in chosen)
    assert [tree.tokens[index] for index in sorted(chosen)] == list(tree.take(chosen).tokens)
