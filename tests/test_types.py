from __future__ import annotations

import pytest

from borrador.types import Draft, GenerationStats


@pytest.mark.parametrize(("tokens", "speed"), [(0, 0.0), (1, 0.0), (3, 4.0)])
def test_speed_leaves_out_the_first_token_and_is_never_negative(tokens: int, speed: float) -> None:
    assert GenerationStats(completion_tokens=tokens, decode_s=0.5).tokens_per_second == speed


def test_the_path_to_a_row_follows_the_parents() -> None:
    chain = Draft(tokens=(5, 6, 7))
    assert [chain.path_to(row) for row in range(4)] == [(), (5,), (5, 6), (5, 6, 7)]
    tree = Draft(tokens=(5, 6, 7, 8), parents=(-1, -1, 1, 2))
    assert [tree.path_to(row) for row in range(5)] == [(), (5,), (6,), (6, 7), (6, 7, 8)]


def test_the_depth_of_a_draft_is_that_of_its_longest_path() -> None:
    assert Draft().depth == 0
    assert Draft(tokens=(5, 6, 7)).depth == 3
    assert Draft(tokens=(5, 6, 7, 8, 9), parents=(-1, 0, -1, 2, 0)).depth == 2
    assert Draft(tokens=(5, 6, 7, 8), parents=(-1, 0, 1, -1)).depth == 3
