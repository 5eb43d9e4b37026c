"""Streamed text is the text, and no character is cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.text.vocabularies import byte_level, sentencepiece

from borrador.text.detokenizer import Detokenizer
from borrador.text.tokenizer import Tokenizer

BYTE_LEVEL = Tokenizer.from_metadata(byte_level())
SENTENCEPIECE = Tokenizer.from_metadata(sentencepiece())


def stream(tokenizer: Tokenizer, ids: list[int], *, starts_text: bool = False) -> list[str]:
    detokenizer = Detokenizer(tokenizer, starts_text=starts_text)
    return [*(detokenizer.push(i) for i in ids), detokenizer.flush()]


def test_a_character_appears_with_its_last_byte() -> None:
    assert stream(BYTE_LEVEL, list("é🙂".encode())) == ["", "é", "", "", "", "🙂", ""]


def test_a_broken_character_appears_as_one_replacement_when_the_next_begins() -> None:
    assert stream(BYTE_LEVEL, [0xF0, 0x9F, ord("a")]) == ["", "", "\ufffda", ""]


def test_an_incomplete_character_at_the_end_becomes_a_replacement() -> None:
    assert stream(BYTE_LEVEL, [ord("a"), 0xF0, 0x9F]) == ["a", "", "", "\ufffd"]


def test_control_tokens_give_no_text_and_do_not_cut_a_character() -> None:
    end = BYTE_LEVEL.vocabulary.index("<|im_end|>")
    assert stream(BYTE_LEVEL, [0xC3, end, 0xA9, end]) == ["", "", "é", "", ""]


def test_after_a_flush_the_stream_begins_anew() -> None:
    detokenizer = Detokenizer(BYTE_LEVEL)
    detokenizer.push(0xC3)
    assert detokenizer.flush() == "\ufffd"
    assert detokenizer.flush() == ""
    assert detokenizer.push(ord("a")) == "a"


def test_the_space_before_a_whole_text_is_dropped_once() -> None:
    ids = [1, *SENTENCEPIECE.encode(" a a", specials=False)]
    assert "".join(stream(SENTENCEPIECE, ids, starts_text=True)) == " a a"
    assert "".join(stream(SENTENCEPIECE, ids)) == "  a a"


@pytest.mark.parametrize("tokenizer", [BYTE_LEVEL, SENTENCEPIECE])
@given(data=st.data())
def test_the_stream_joined_is_the_ids_decoded_at_once(tokenizer: Tokenizer, data: st.DataObject) -> None:
    ids = data.draw(st.lists(st.integers(0, tokenizer.vocabulary_size - 1)))
    starts_text = data.draw(st.booleans())
    texts = stream(tokenizer, ids, starts_text=starts_text)
    assert "".join(texts) == tokenizer.decode(ids, starts_text=starts_text)


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_no_piece_of_a_valid_text_holds_a_replacement(text: str) -> None:
    texts = stream(BYTE_LEVEL, list(text.replace("\ufffd", "").encode()))
    assert "\ufffd" not in "".join(texts)
    assert "".join(texts) == text.replace("\ufffd", "")
