"""Merging with a queue gives what merging step by step gives."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from borrador.text.sentencepiece import byte_of, merge_pieces


def merge_step_by_step(text: str, ids: dict[str, int], scores: list[float]) -> list[str]:
    pieces = list(text)
    while True:
        joined = [pieces[i] + pieces[i + 1] for i in range(len(pieces) - 1)]
        found = [(-scores[ids[piece]], i) for i, piece in enumerate(joined) if piece in ids]
        if not found:
            return pieces
        _, i = min(found)
        pieces[i : i + 2] = [joined[i]]


@given(
    st.text("abc", max_size=30),
    st.dictionaries(st.text("abc", min_size=2, max_size=5), st.integers(0, 9), max_size=30),
)
@example("abcd", {"ab": 9, "cd": 8, "abcd": 7})
@example("aabab", {"ab": 9, "aab": 8, "abab": 7, "aabab": 6})
def test_the_best_pair_of_the_whole_text_is_always_next(text: str, pieces: dict[str, int]) -> None:
    ids = {piece: i for i, piece in enumerate(pieces)}
    scores = [float(score) for score in pieces.values()]
    assert merge_pieces(text, ids, scores) == merge_step_by_step(text, ids, scores)


def test_a_byte_token_is_told_from_text_that_looks_like_one() -> None:
    assert byte_of("<0x0A>") == 10
    assert byte_of("<0xfF>") == 255
    assert [byte_of(text) for text in ("<0x0>", "<0x0G>", "<0x0A> ", "0x0A", "a")] == [None] * 5
