"""A stop string ends the text, wherever the stream cuts it."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from borrador.text.stops import StopDetector


def stream(stops: list[str], texts: list[str]) -> tuple[str, bool]:
    detector = StopDetector(stops)
    result = ""
    for text in texts:
        certain, stopped = detector.push(text)
        result += certain
        if stopped:
            break
    return result + detector.flush(), detector.stopped


def test_text_is_passed_on_at_once_where_no_stop_string_may_begin() -> None:
    detector = StopDetector(["\n\n", "User:"])
    assert detector.push("Hello Us") == ("Hello ", False)
    assert detector.push("a") == ("Usa", False)


def test_a_stop_string_over_several_pieces_is_found_and_cut() -> None:
    detector = StopDetector(["STOP"])
    assert [detector.push(text) for text in ("xS", "TO", "Px")] == [("x", False), ("", False), ("", True)]
    assert detector.flush() == ""


def test_a_tail_that_did_not_become_a_stop_string_is_given_back() -> None:
    detector = StopDetector(["STOP"])
    assert detector.push("xSTO") == ("x", False)
    assert detector.flush() == "STO"
    assert detector.flush() == ""


def test_a_false_start_does_not_hide_the_stop_string_inside_it() -> None:
    assert stream(["aab"], ["a", "a", "a", "b", "c"]) == ("a", True)


def test_the_stop_string_complete_first_wins() -> None:
    assert stream(["cd", "ab"], ["xabcd"]) == ("x", True)
    assert stream(["abcd", "bc"], ["xabcd"]) == ("xa", True)


def test_of_two_that_end_together_the_longest_wins() -> None:
    assert stream(["bc", "abc"], ["xabc"]) == ("x", True)


def test_nothing_follows_a_stop() -> None:
    detector = StopDetector(["."])
    assert detector.push("a.b") == ("a", True)
    assert detector.push("c") == ("", True)


def test_without_stop_strings_everything_passes() -> None:
    assert stream([], ["a", "", "b"]) == ("ab", False)


def reference(stops: list[str], text: str) -> tuple[str, bool]:
    for end in range(1, len(text) + 1):
        starts = [end - len(stop) for stop in stops if text[:end].endswith(stop)]
        if starts:
            return text[: min(starts)], True
    return text, False


@given(
    st.lists(st.text("abc", min_size=1, max_size=5), max_size=4),
    st.lists(st.text("abc", max_size=6), max_size=12),
)
@example(["aba", "bac"], ["ab", "ac"])
def test_the_result_is_the_same_however_the_text_is_cut(stops: list[str], texts: list[str]) -> None:
    expected = reference(stops, "".join(texts))
    assert stream(stops, texts) == expected
    assert stream(stops, list("".join(texts))) == expected


@pytest.mark.parametrize("stop", ["ab", "aab", "abab"])
@given(texts=st.lists(st.text("ab", max_size=3), max_size=12))
def test_what_is_held_back_is_always_the_start_of_a_stop_string(stop: str, texts: list[str]) -> None:
    detector = StopDetector([stop])
    given_out, pushed = "", ""
    for text in texts:
        certain, stopped = detector.push(text)
        given_out, pushed = given_out + certain, pushed + text
        if stopped:
            return
        assert stop.startswith(pushed.removeprefix(given_out))
