from __future__ import annotations

import pytest
from tests.scripted import END, ids, letter_tokenizer

from borrador.engine.answer import Answer
from borrador.text.detokenizer import Detokenizer


def make_answer(*stop: str, capacity: int = 100) -> Answer:
    return Answer(Detokenizer(letter_tokenizer()), stop=stop, end_ids={END}, capacity=capacity)


def test_text_is_held_back_while_it_may_become_a_stop_string() -> None:
    answer = make_answer("abc")
    assert answer.take(ids("dab")) == 3
    assert answer.texts == ["d", "", ""]
    assert answer.take(ids("e")) == 1
    assert answer.texts == ["abe"]


def test_held_text_is_given_out_at_the_end() -> None:
    answer = make_answer("abc")
    assert answer.take([*ids("ab"), END, *ids("cd")]) == 2
    assert answer.texts == ["", ""]
    assert answer.tail == "ab"
    assert answer.finish_reason == "stop"


def test_a_stop_string_wins_over_the_length_limit() -> None:
    answer = make_answer("ab", capacity=2)
    assert answer.take(ids("abc")) == 2
    assert answer.finish_reason == "stop"
    assert answer.tail == ""


@pytest.mark.parametrize("capacity", [1, 2, 3])
def test_the_length_limit_cuts(capacity: int) -> None:
    answer = make_answer(capacity=capacity)
    assert answer.room() == capacity
    assert answer.take(ids("abcd")) == capacity
    assert answer.finish_reason == "length"
    assert answer.room() == 0
