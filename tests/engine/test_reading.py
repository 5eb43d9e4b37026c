from __future__ import annotations

import math

import pytest

from borrador.engine.reading import FEWEST_ROWS, STEP_ROWS, ReadingPace


def test_a_pass_is_filled_where_nobody_waits_for_it() -> None:
    assert ReadingPace(0.1).rows(0) == STEP_ROWS
    assert ReadingPace(math.inf).rows(30) == STEP_ROWS - 30


@pytest.mark.parametrize(
    ("row_s", "writing", "rows"),
    [(0.001, 1, 99), (0.001, 10, 90), (0.001, 60, 120), (0.01, 1, FEWEST_ROWS), (0.00001, 4, STEP_ROWS - 4)],
)
def test_those_who_write_wait_no_longer_than_is_allowed(row_s: float, writing: int, rows: int) -> None:
    pace = ReadingPace(0.1)
    pace.observe(100, 100, 100 * row_s)
    assert pace.rows(writing) == rows


def test_a_pass_has_no_more_rows_than_the_engine_takes_at_once_but_some_for_prompts() -> None:
    assert ReadingPace(0.1).rows(200) == STEP_ROWS - 200
    assert ReadingPace(0.1).rows(STEP_ROWS + 1) == FEWEST_ROWS
    assert ReadingPace(math.inf).rows(STEP_ROWS + 1) == FEWEST_ROWS


def test_the_pace_follows_passes_that_read_enough_to_tell() -> None:
    pace = ReadingPace(0.1)
    pace.observe(100, 50, 0.1)
    pace.observe(20, FEWEST_ROWS - 1, 9.0)
    assert pace.rows(1) == 99
    for _ in range(60):
        pace.observe(100, 50, 0.2)
    assert pace.rows(1) == 49
