from __future__ import annotations

from typing import Any

from borrador.types import Draft
from borrador.verify.rehearsal import RehearsedDrafter

ANSWER = [index * 37 % 1000 for index in range(400)]
NO_SHAPER: Any = None


def propose(position: int, budget: int, *, branches: bool) -> Draft:
    drafter = RehearsedDrafter("r", 1000, branches=branches)
    drafter.context = ANSWER
    return drafter.open(NO_SHAPER).propose(ANSWER[:position], budget)


def test_a_chain_is_the_answer_with_about_one_wrong_token_in_four() -> None:
    draft = propose(0, 400, branches=False)
    wrong = sum(left != right for left, right in zip(draft.tokens, ANSWER, strict=True))
    assert draft.parents is None
    assert 80 < wrong < 120


def test_a_place_is_right_or_wrong_whatever_the_round() -> None:
    whole = propose(0, 400, branches=False).tokens
    for position in (1, 17, 203):
        assert propose(position, 9, branches=False).tokens == whole[position : position + 9]


def test_a_tree_holds_the_chain_with_wrong_tokens_beside_and_below() -> None:
    chain = propose(20, 5, branches=False).tokens
    tree = propose(20, 15, branches=True)
    assert tree.path_to(3 * 4 + 2) == chain
    assert tree.parents == (-1, -1, 0, 1, 1, 3, 4, 4, 6, 7, 7, 9, 10, 10, 12)
    for index, token in enumerate(chain):
        wrong, right, below = tree.tokens[3 * index : 3 * index + 3]
        assert right == token
        assert len({wrong, right, below}) == 3


def test_budgets_hold_and_a_finished_answer_gets_no_draft() -> None:
    assert len(propose(3, 7, branches=True).tokens) == 7
    assert len(propose(398, 7, branches=False).tokens) == 2
    assert propose(400, 7, branches=False).tokens == propose(400, 7, branches=True).tokens == ()
