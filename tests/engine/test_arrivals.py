from __future__ import annotations

from typing import Any, cast

from borrador.engine.arrivals import Arrivals
from borrador.engine.member import Member


def member(*, is_reading: bool = False) -> Member:
    nothing = cast("Any", None)
    return Member(nothing, nothing, is_reading=is_reading)


def test_requests_that_all_came_before_the_first_was_written_are_not_followed_by_others() -> None:
    arrivals = Arrivals()
    for live in ([], [member(is_reading=True)], [member(is_reading=True), member(is_reading=True)]):
        arrivals.note(live)
        assert not arrivals.go_on


def test_one_that_came_while_others_were_written_is_followed_by_others_until_these_have_gone() -> None:
    arrivals, first, second = Arrivals(), member(), member()
    arrivals.note([first, second, member(is_reading=True)])
    first.is_gone = True
    assert arrivals.go_on
    second.is_gone = True
    assert not arrivals.go_on


def test_what_counts_is_the_last_that_came() -> None:
    arrivals, first, second = Arrivals(), member(), member()
    arrivals.note([first])
    first.is_gone = True
    arrivals.note([second])
    assert arrivals.go_on
