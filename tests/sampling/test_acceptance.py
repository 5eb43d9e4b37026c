"""Single verdicts; the laws that they add up to are in `test_acceptance_laws.py`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from borrador.errors import UsageError
from borrador.sampling.acceptance import LawOfRow, accept_by_block, accept_by_rejection, accept_choices, residual
from borrador.sampling.noise import FreshNoise
from borrador.sampling.shaping import Distribution
from borrador.types import Float32Array, Verdict


class Decided:
    """Noise whose uniform variates are given; it remembers the probabilities it was asked for."""

    def __init__(self, *variates: float) -> None:
        self.asked: list[float] = []
        self.weights: list[float] = []
        self._variates = iter(variates)

    def accepts(self, probability: float) -> bool:
        self.asked.append(probability)
        return next(self._variates) < probability

    def pick(self, weights: Float32Array) -> int:
        self.weights = weights.tolist()
        return int(np.argmax(weights))


def rows(*laws: Sequence[float]) -> Callable[[int], Distribution]:
    return lambda row: Distribution(None, np.array(laws[row], np.float32))


def q_of(*laws: Sequence[float]) -> Float32Array:
    return np.array(laws, np.float32)


def chosen(*tokens: int) -> Callable[[int], int]:
    return lambda row: tokens[row]


@pytest.mark.parametrize(
    ("tokens", "choices", "verdict"),
    [
        ((), (7,), Verdict((), 7, False, 0)),
        ((1, 2, 3), (1, 2, 3, 4), Verdict((0, 1, 2), 4, True, 3)),
        ((1, 2, 3), (1, 9, 3, 4), Verdict((0,), 9, False, 2)),
        ((1, 2, 3), (9, 2, 3, 4), Verdict((), 9, False, 1)),
        ((1, 2, 3), (1, 2, 9, 4), Verdict((0, 1), 9, False, 3)),
    ],
)
def test_chains_are_followed_up_to_the_first_miss(
    tokens: tuple[int, ...], choices: tuple[int, ...], verdict: Verdict
) -> None:
    assert accept_choices(tokens, None, chosen(*choices)) == verdict


def test_trees_are_followed_along_the_matching_branch() -> None:
    tokens, parents = (1, 2, 3, 4, 5), (-1, -1, 1, 1, 3)
    assert accept_choices(tokens, parents, chosen(2, 0, 4, 0, 5, 8)) == Verdict((1, 3, 4), 8, True, 3)
    assert accept_choices(tokens, parents, chosen(2, 0, 9, 0, 5, 8)) == Verdict((1,), 9, False, 2)
    assert accept_choices(tokens, parents, chosen(1, 6, 9, 0, 5, 8)) == Verdict((0,), 6, True, 1)


def test_rows_behind_the_first_miss_are_never_looked_at() -> None:
    seen: list[int] = []

    def choose(row: int) -> int:
        seen.append(row)
        return (1, 9, 3, 4)[row]

    accept_choices((1, 2, 3), None, choose)
    assert seen == [0, 1]


def test_rejection_follows_a_tree_to_a_leaf() -> None:
    tokens, parents = (0, 1, 2, 3, 4), (-1, -1, 1, 1, 3)
    unread = [9.0] * 5
    q = q_of([0.4, 0.3, 0.2, 0.1, 0.0], unread, [0.1, 0.1, 0.4, 0.4, 0.0], unread, [0.2] * 5)
    p = rows([0.2, 0.4, 0.2, 0.1, 0.1], unread, [0.1, 0.2, 0.1, 0.5, 0.1], unread, [0.2] * 5, [0.0, 0.0, 0.0, 0.4, 0.6])
    noise = Decided(0.51, 0.99, 0.26, 0.49, 0.99)
    assert accept_by_rejection(tokens, q, p, noise, parents=parents) == Verdict((1, 3, 4), 4, True, 3)
    # Refusing token 0 leaves 1/2 of p and 1/2 of q for token 1; refusing token 2 leaves 1/3 and 2/3 for token 3.
    assert noise.asked == pytest.approx([0.5, 1.0, 0.25, 0.5, 1.0], abs=1e-6)


def test_the_own_token_comes_from_what_all_refused_siblings_leave() -> None:
    q = q_of([0.4, 0.25, 0.25, 0.1, 0.0], [9.0] * 5)
    p = rows([0.2, 0.3, 0.2, 0.1, 0.2])
    noise = Decided(0.51, 0.49)
    assert accept_by_rejection((0, 1), q, p, noise, parents=(-1, -1)) == Verdict((), 4, False, 1)
    assert noise.asked == pytest.approx([0.5, 0.2 / (0.25 / 0.6)])
    assert noise.weights == pytest.approx([0.0, 0.0, 0.0, 0.0, 1.0])


def test_certain_siblings_share_the_targets_own_law() -> None:
    noise = Decided(0.51, 0.61)
    verdict = accept_by_rejection((2, 0), None, rows([0.3, 0.2, 0.5]), noise, parents=(-1, -1))
    assert verdict == Verdict((), 1, False, 1)
    assert noise.asked == pytest.approx([0.5, 0.6])
    assert noise.weights == pytest.approx([0.0, 1.0, 0.0])


def test_a_token_that_stands_twice_below_a_parent_is_refused_the_second_time() -> None:
    noise = Decided(0.9, 0.0, 0.0)
    p = rows([0.5, 0.5], [0.5, 0.5])
    assert accept_by_rejection((0, 0, 1), None, p, noise, parents=(-1, -1, 0)) == Verdict((), 1, False, 1)
    assert noise.asked == pytest.approx([0.5, 0.0])


def test_a_token_that_q_excludes_is_refused() -> None:
    p, q = rows([1.0, 0.0, 0.0], [1.0, 0.0, 0.0]), q_of([0.0, 1.0, 0.0])
    assert accept_by_rejection([0], q, p, Decided()) == Verdict((), 0, False, 1)
    assert accept_by_block([0], q, p, Decided(0.0)) == Verdict((), 0, False, 1)


@pytest.mark.parametrize("ids", [None, np.array([1, 2, 4], np.int32)])
def test_an_empty_residual_falls_back_to_p(ids: np.ndarray[tuple[int], np.dtype[np.int32]] | None) -> None:
    law = np.array([0.5, 0.25, 0.25], np.float32)
    q = np.zeros(6, np.float32)
    q[[0, 1, 2] if ids is None else ids] = law
    left = residual(Distribution(ids, law), q[:3] if ids is None else q)
    assert (left.ids is ids, left.probabilities.tolist()) == (True, law.tolist())


@pytest.mark.parametrize("judge", [accept_by_rejection, accept_by_block])
def test_equal_laws_accept_everything(judge: Callable[..., Verdict]) -> None:
    law = np.random.default_rng(5).dirichlet(np.ones(50)).astype(np.float32)
    p = rows(law.tolist(), law.tolist(), law.tolist())
    for tokens in ((0, 7), (49, 3)):
        assert judge(tokens, np.stack([law, law]), p, Decided(*[0.999999] * 3)).path == (0, 1)


def test_no_draft_is_a_draw_from_p() -> None:
    p = rows([0.2, 0.5, 0.3])
    assert accept_by_rejection((), None, p, Decided()) == Verdict((), 1, False, 0)
    assert accept_by_block((), q_of(), p, Decided(0.999)) == Verdict((), 1, False, 0)


def test_in_a_block_a_likely_token_makes_up_for_an_unlikely_one() -> None:
    p, q = rows(*[[1 / 3, 2 / 3]] * 3), q_of(*[[2 / 3, 1 / 3]] * 2)
    block = Decided(0.999)
    assert accept_by_block((0, 1), q, p, block) == Verdict((0, 1), 1, True, 2)
    assert block.asked == pytest.approx([1.0])
    assert accept_by_rejection((0, 1), q, p, Decided(0.999)) == Verdict((), 1, False, 1)


def test_a_block_is_cut_where_chance_first_keeps_it_from_the_end() -> None:
    p = rows([0.1, 0.9], [0.1, 0.9], [0.5, 0.5])
    q = q_of([0.5, 0.5], [0.95, 0.05])
    reach = [1.0, 0.2, 0.2 * 0.1 / 0.95]
    excess = 0.2 * 0.9 - 0.05
    for variates, verdict in (
        ((0.02,), Verdict((0, 1), 0, True, 2)),
        ((0.03, 0.13), Verdict((0,), 1, False, 2)),
        ((0.03, 0.15), Verdict((), 1, False, 1)),
    ):
        noise = Decided(*variates)
        assert accept_by_block((0, 0), q, p, noise) == verdict
        assert noise.asked == pytest.approx([reach[2], excess / (excess + 1.0 - reach[1])][: len(variates)])


def test_rows_behind_an_impossible_token_are_never_looked_at() -> None:
    seen: list[int] = []

    def p(row: int) -> Distribution:
        seen.append(row)
        return Distribution(None, np.array([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]][row], np.float32))

    q = q_of(*[[0.2, 0.3, 0.5]] * 3)
    for judge in (accept_by_rejection, accept_by_block):
        seen.clear()
        assert 1 not in judge((0, 2, 1), q, p, Decided(0.0, 0.0, 0.0)).path
        assert seen == [0, 1]


def test_lenience_divides_q_before_it_is_compared() -> None:
    p, q = rows([0.1, 0.9], [0.5, 0.5]), q_of([0.8, 0.2])
    exact, lenient, certain = Decided(0.3), Decided(0.3), Decided(0.3)
    assert accept_by_rejection((0,), q, p, exact) == Verdict((), 1, False, 1)
    assert accept_by_rejection((0,), q, p, lenient, lenience=0.25) == Verdict((0,), 0, True, 1)
    assert accept_by_rejection((0,), None, p, certain, lenience=0.25) == Verdict((0,), 0, True, 1)
    assert [noise.asked for noise in (exact, lenient, certain)] == [
        pytest.approx([value], rel=1e-6) for value in (0.125, 0.5, 0.4)
    ]


def none_behind(count: int) -> LawOfRow:
    """Laws of the first rows, all of token 0; at the others nothing is left to choose."""

    def law(row: int) -> Distribution:
        if row >= count:
            raise UsageError("nothing is left", "Nothing helps.")
        return Distribution(None, np.array([1.0, 0.0], np.float32))

    return law


JUDGES: dict[str, Callable[[Sequence[int], LawOfRow], Verdict]] = {
    "choices": lambda tokens, p: accept_choices(tokens, None, lambda row: int(p(row).probabilities.argmax())),
    "certain": lambda tokens, p: accept_by_rejection(tokens, None, p, FreshNoise()),
    "drawn": lambda tokens, p: accept_by_rejection(tokens, np.full((len(tokens), 2), 0.5, np.float32), p, FreshNoise()),
    "block": lambda tokens, p: accept_by_block(tokens, np.full((len(tokens), 2), 0.5, np.float32), p, FreshNoise()),
}


@pytest.mark.parametrize("judge", JUDGES)
def test_the_last_token_before_a_row_without_a_choice_stands_as_the_targets_own(judge: str) -> None:
    for count in (1, 2, 3):
        assert JUDGES[judge]((0, 0, 0), none_behind(count)) == Verdict(tuple(range(count - 1)), 0, False, count)
    assert JUDGES[judge]((0, 1, 0), none_behind(2)).path == (0,)
    for tokens in ((), (0, 0)):
        with pytest.raises(UsageError, match="nothing is left"):
            JUDGES[judge](tokens, none_behind(0))


def test_a_block_before_a_row_without_a_choice_is_judged_as_one_that_ends_there() -> None:
    q = np.array([[0.5, 0.5], [0.25, 0.75], [1.0, 0.0]], np.float32)

    def law(row: int) -> Distribution:
        if row == 2:
            raise UsageError("nothing is left", "Nothing helps.")
        return Distribution(None, np.array([0.25, 0.75], np.float32))

    noise = FreshNoise(np.random.default_rng(5))
    verdicts = [accept_by_block((0, 1, 0), q, law, noise) for _ in range(4000)]
    whole = sum(verdict.path == (0,) and verdict.next_token == 1 for verdict in verdicts) / 4000
    assert whole == pytest.approx(0.5, abs=0.04)  # min(1, 0.25 / 0.5) * 0.75 / 0.75
    assert all(len(verdict.path) <= 1 for verdict in verdicts)
