"""Text is merged as SentencePiece merges it, and into nothing that it does not spell."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.text.vocabularies import UNUSED, USER_DEFINED, sentencepiece

from borrador.errors import ModelError
from borrador.text.sentencepiece import byte_of
from borrador.text.tokenizer import Tokenizer


def encode(text: str, scores: Mapping[str, float], *, specials: bool = False) -> list[str]:
    tokenizer = Tokenizer.from_metadata(sentencepiece(dict(scores), add_space_prefix=False))
    return [tokenizer.vocabulary[i] for i in tokenizer.encode(text, specials=specials)]


def merge_step_by_step(text: str, scores: Mapping[str, float]) -> list[str]:
    """The pair whose joined piece has the highest score, of equals the leftmost, until there is none."""
    pieces = list(text)
    while True:
        joined = [pieces[i] + pieces[i + 1] for i in range(len(pieces) - 1)]
        found = [(-scores[piece], i) for i, piece in enumerate(joined) if piece in scores]
        if not found:
            return pieces
        _, i = min(found)
        pieces[i : i + 2] = [joined[i]]


def spelt(piece: str, scores: Mapping[str, float]) -> list[str]:
    return [piece] if piece in scores else [f"<0x{byte:02X}>" for byte in piece.encode()]


@given(
    st.text("abé", max_size=30),
    st.dictionaries(st.text("abé", min_size=1, max_size=5), st.integers(-9, 9).map(float), max_size=30),
)
@example("abab", {"a": 0, "b": 0, "ab": 9, "ba": 9, "abab": 7})
@example("aabab", {"ab": 9, "aab": 8, "abab": 7, "aabab": 6})
@example("baab", {"ba": -1.0, "aa": 0.5, "ab": -0.5})
def test_the_best_pair_of_the_whole_text_is_always_next(text: str, scores: dict[str, float]) -> None:
    merged = merge_step_by_step(text, scores)
    assert encode(text, scores) == [token for piece in merged for token in spelt(piece, scores)]


def test_text_that_only_looks_like_a_control_token_is_never_merged_into_it() -> None:
    scores = {"<": -9.0, "s": -9.0, ">": -9.0, "<s": -1.0, "s>": -2.0}
    assert encode("<s>", scores) == ["<s", ">"]
    assert encode("<s>", scores, specials=True) == ["<s>"]


def test_text_that_only_looks_like_a_byte_is_never_merged_into_it() -> None:
    scores = {"<": -9, "0": -9, "x": -9, "<0": -1, "x4": -2, "1>": -3, "<0x4": -4}
    assert encode("<0x41>", scores) == ["<0x4", "1>"]


@pytest.mark.parametrize("kind", [UNUSED, USER_DEFINED, 0, 99])
def test_tokens_of_all_other_kinds_are_merged_into(kind: int) -> None:
    metadata = sentencepiece({"▁": -9, "a": -9, "▁a": -1})
    metadata["tokenizer.ggml.token_type"][259 + 2] = int(kind)
    tokenizer = Tokenizer.from_metadata(metadata)
    assert [tokenizer.vocabulary[i] for i in tokenizer.encode("a", specials=False)] == ["▁a"]


@pytest.mark.parametrize("token", ["a\0b", "x" * 10_000])
def test_a_token_that_the_library_does_not_take_is_refused(token: str) -> None:
    with pytest.raises(ModelError, match="must be a SentencePiece vocabulary"):
        Tokenizer.from_metadata(sentencepiece({token: 0}))


def test_scores_beyond_32_bits_are_refused() -> None:
    with pytest.raises(ModelError, match="must be a SentencePiece vocabulary"):
        Tokenizer.from_metadata(sentencepiece({"a": 1e300}))


def test_a_byte_token_is_told_from_text_that_looks_like_one() -> None:
    assert byte_of("<0x0A>") == 10
    assert byte_of("<0xfF>") == 255
    assert [byte_of(text) for text in ("<0x0>", "<0x0G>", "<0x0A> ", "0x0A", "a")] == [None] * 5
