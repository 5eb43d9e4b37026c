from __future__ import annotations

import pytest

from borrador.engine.candidates import Load
from borrador.engine.worth import token_values


def straight(rows: float) -> float:
    """A pass takes a base of 6 s and 0.5 s for each row."""
    return 6.0 + 0.5 * rows


def test_alone_an_accepted_token_saves_a_pass() -> None:
    assert token_values(lambda rows: 3.0, Load(), [5.0], draining=True) == [3.0]


def test_while_others_wait_every_token_saves_its_share_of_a_pass() -> None:
    values = token_values(straight, Load(4, 4), [90.0, 10.0, 50.0, 1.0], draining=False)
    assert values == pytest.approx([0.5 + 6.0 / 4] * 4)


def test_when_nobody_waits_only_those_that_may_be_the_last_save_passes() -> None:
    values = token_values(straight, Load(4, 4), [100.0, 20.0, 99.5, 60.0], draining=True)
    assert values == pytest.approx([0.5 + 6.0 / 2, 0.5, 0.5 + 6.0 / 2, 0.5])


def test_who_is_a_step_ahead_has_nothing_to_save_until_the_last_has_caught_up() -> None:
    values = token_values(straight, Load(3, 3), [4.0, 3.5, 3.0], draining=True)
    assert values == pytest.approx([0.5 + 6.0 / 2, 0.5 + 6.0 / 2, 0.5])


def test_where_rows_are_free_a_token_saves_nothing_but_passes() -> None:
    assert token_values(lambda rows: 8.0, Load(2, 2), [50.0, 9.0], draining=True) == [8.0, 0.0]
