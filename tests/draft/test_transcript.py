"""One text in two vocabularies."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.text.vocabularies import byte_level, sentencepiece

from borrador.draft.transcript import Transcript, continue_with, counterpart
from borrador.text.tokenizer import Tokenizer

BYTES = Tokenizer.from_metadata(byte_level(pairs=[]))
WORDS = Tokenizer.from_metadata(byte_level())
PIECES = Tokenizer.from_metadata(sentencepiece())
TEXTS = st.text(alphabet="the hello12 \n34é好🙂", max_size=40)


def read(tokenizer: Tokenizer, tokens: Sequence[int]) -> bytes:
    return b"".join(map(tokenizer.token_bytes, tokens))


@given(TEXTS, st.lists(st.integers(1, 9), max_size=12))
@pytest.mark.parametrize(("written", "other"), [(WORDS, BYTES), (BYTES, WORDS), (WORDS, PIECES)])
def test_both_hold_the_same_text_but_for_a_character_that_is_not_complete(
    written: Tokenizer, other: Tokenizer, text: str, steps: list[int]
) -> None:
    tokens = written.encode(text, specials=False)
    transcript = Transcript(written, other)
    end = 0
    for step in [*steps, len(tokens)]:
        end = min(end + step, len(tokens))
        before = list(transcript.tokens)
        kept = transcript.follow(tokens[:end])
        assert transcript.tokens[:kept] == before[:kept]
        held = read(other, transcript.tokens)
        if other is PIECES:
            held = held.removeprefix(b" ")
        assert held + transcript.pending == read(written, tokens[:end])
        held.decode()


def test_a_short_text_has_the_tokens_that_it_has_when_encoded_at_once() -> None:
    transcript = Transcript(BYTES, WORDS)
    text = "the hello 1234 the\n\nhello"
    tokens = BYTES.encode(text, specials=False)
    for end in range(len(tokens) + 1):
        transcript.follow(tokens[:end])
        assert transcript.tokens == WORDS.encode(text[:end], specials=False)


@pytest.mark.parametrize("text", ["hello the 1234 " * 400, "好" * 3000, " " * 5000, "x" * 5000, "\n" * 5000])
def test_the_work_per_token_does_not_grow_with_the_text(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[int] = []
    encode = Tokenizer.encode

    def counting(self: Tokenizer, text: str, *, specials: bool, starts_text: bool = True) -> list[int]:
        encoded.append(len(text))
        return encode(self, text, specials=specials, starts_text=starts_text)

    tokens = BYTES.encode(text, specials=False)
    monkeypatch.setattr(Tokenizer, "encode", counting)
    transcript = Transcript(BYTES, WORDS)
    settled = settled_bytes = 0
    for end in range(0, len(tokens), 3):
        del encoded[:]
        transcript.follow(tokens[:end])
        assert sum(encoded) < 1000
        assert transcript.settled >= settled
        settled_bytes += len(read(WORDS, transcript.tokens[settled : transcript.settled]))
        settled = transcript.settled
        assert end - 3300 < settled_bytes <= end


def test_a_long_text_is_settled_between_words() -> None:
    transcript = Transcript(BYTES, WORDS)
    text = "hello the 1234 " * 400
    tokens = BYTES.encode(text, specials=False)
    for end in range(0, len(tokens) + 1, 7):
        transcript.follow(tokens[:end])
    transcript.follow(tokens)
    assert transcript.tokens == WORDS.encode(text, specials=False)


def test_control_tokens_are_carried_over_by_name_and_ends_by_meaning() -> None:
    start, end, text_end = (WORDS.control_id(name) for name in ("<|im_start|>", "<|im_end|>", "<|endoftext|>"))
    assert start is not None
    assert end is not None
    assert text_end is not None
    assert counterpart(start, WORDS, BYTES) == BYTES.control_id("<|im_start|>")
    assert counterpart(start, WORDS, PIECES) is None
    assert counterpart(end, WORDS, PIECES) == PIECES.eos_id
    assert WORDS.control_id("the") is WORDS.control_id("nothing") is None
    context = [start, *WORDS.encode("the 12", specials=False), end, *WORDS.encode("hello", specials=False)]
    transcript = Transcript(WORDS, BYTES)
    transcript.follow(context)
    names = [BYTES.token_text(token) for token in transcript.tokens]
    assert "".join(names) == "<|im_start|>the 12<|im_end|>hello"


def test_a_text_begins_as_the_vocabulary_that_reads_wants_it() -> None:
    assert Transcript(WORDS, PIECES).tokens == [PIECES.bos_id]
    transcript = Transcript(WORDS, PIECES)
    transcript.follow(WORDS.encode("ab", specials=False))
    assert transcript.tokens == [PIECES.bos_id, *PIECES.encode("ab", specials=False)]


def test_a_context_that_was_cut_back_is_read_again() -> None:
    transcript = Transcript(BYTES, WORDS)
    transcript.follow(BYTES.encode("the hello", specials=False))
    assert transcript.follow(BYTES.encode("the", specials=False)) == 0
    assert transcript.tokens == WORDS.encode("the", specials=False)


@given(TEXTS, TEXTS)
def test_a_continuation_spells_the_text_and_reads_as_if_written_at_once(before: str, text: str) -> None:
    context = WORDS.encode(before, specials=False)
    tokens = continue_with(text.encode(), context, WORDS)
    assert read(WORDS, tokens) == text.encode()
    whole = WORDS.encode(before + text, specials=False)
    if len(context) <= 8 and whole[: len(context)] == context:
        assert tokens == whole[len(context) :]


def test_a_continuation_completes_a_character_and_leaves_an_incomplete_one_out() -> None:
    data = "好é".encode()
    for cut in range(len(data) + 1):
        context = [*WORDS.encode("the ", specials=False), *data[:cut]]
        assert read(WORDS, continue_with(data[cut:], context, WORDS)) == data[cut:]
    assert read(WORDS, continue_with("ab好".encode()[:-1], [], WORDS)) == b"ab"
    end = WORDS.control_id("<|im_end|>")
    assert end is not None
    assert continue_with(b"the", [104, end], WORDS) == WORDS.encode("the", specials=False)
