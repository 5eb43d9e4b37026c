"""SentencePiece-style encoding (Kudo and Richardson, arXiv 1808.06226): merge the best-scored neighbours first.

The `tokenizers` library ranks pairs, a GGUF file ranks results; turning one into the other takes seconds for a
vocabulary of 262 144, so only the cutting at special tokens is the library's, and the merging is done here.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from borrador.errors import ModelError
from borrador.text.byte_level import add_specials, special_tokens
from borrador.text.vocabulary import DAMAGED, Vocabulary, read_numbers

if TYPE_CHECKING:
    import tokenizers

SPACE = "▁"
_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_RAW = "\0raw text\0"


def byte_of(token: str) -> int | None:
    """The byte a byte-fallback token such as `<0x0A>` stands for."""
    found = _BYTE.fullmatch(token)
    return int(found[1], 16) if found else None


class SentencePieceEncoder:
    """Text to token ids, with byte fallback."""

    def __init__(self, vocabulary: Vocabulary, metadata: Mapping[str, Any], *, add_space_prefix: bool) -> None:
        self._ids = vocabulary.ids
        self._scores = read_numbers(metadata, "tokenizer.ggml.scores", len(vocabulary.tokens), "fiu")
        self._byte_ids = _find_byte_ids(vocabulary)
        self._add_space_prefix = add_space_prefix
        self._cutters = _build_cutters(vocabulary)

    def encode(self, text: str, *, specials: bool, starts_text: bool) -> list[int]:
        ids: list[int] = []
        after_special = starts_text
        encoding = self._cutters[specials].encode(text, add_special_tokens=False)
        for token_id, (start, end) in zip(encoding.ids, encoding.offsets, strict=True):
            raw = token_id == len(self._scores)
            if raw:
                prefix = SPACE if self._add_space_prefix and after_special else ""
                ids.extend(self._encode_raw(prefix + text[start:end].replace(" ", SPACE)))
            else:
                ids.append(token_id)
            after_special = not raw
        return ids

    def _encode_raw(self, text: str) -> Iterator[int]:
        for piece in merge_pieces(text, self._ids, self._scores):
            token_id = self._ids.get(piece)
            if token_id is None:
                yield from (self._byte_ids[byte] for byte in piece.encode())
            else:
                yield token_id


def merge_pieces(text: str, ids: Mapping[str, int], scores: list[float]) -> list[str]:
    """Merge neighbouring pieces, starting from characters, until no two of them form a token.

    The pair whose merged token has the highest score goes first, the leftmost of equals.
    """
    pieces = list(text)
    after = list(range(1, len(pieces) + 1))
    before = list(range(-1, len(pieces)))
    queue: list[tuple[float, int, int, str, str]] = []

    def offer(left: int, right: int) -> None:
        if left >= 0 and right < len(pieces):
            token_id = ids.get(pieces[left] + pieces[right])
            if token_id is not None:
                heapq.heappush(queue, (-scores[token_id], left, right, pieces[left], pieces[right]))

    for right in range(1, len(pieces)):
        offer(right - 1, right)
    while queue:
        _, left, right, left_piece, right_piece = heapq.heappop(queue)
        if pieces[left] != left_piece or pieces[right] != right_piece:
            continue  # one of them has been merged since
        pieces[left] += right_piece
        pieces[right] = ""
        after[left] = after[right]
        before[after[right]] = left
        offer(before[left], left)
        offer(left, after[left])
    return [piece for piece in pieces if piece]


def _find_byte_ids(vocabulary: Vocabulary) -> list[int]:
    found = [vocabulary.ids.get(f"<0x{byte:02X}>", vocabulary.unknown_id) for byte in range(256)]
    if any(token_id is None for token_id in found):
        raise ModelError("the vocabulary must have a token for every byte or an unknown token, it lacks both", DAMAGED)
    return [token_id for token_id in found if token_id is not None]


def _build_cutters(vocabulary: Vocabulary) -> tuple[tokenizers.Tokenizer, tokenizers.Tokenizer]:
    """Cut text at special tokens, indexed by `specials`; what lies between gets the id after the last."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel

    user_defined, control = special_tokens(vocabulary)
    cutters = []
    for texts in (user_defined, user_defined + control):
        words = {text: vocabulary.ids[text] for text in texts}
        cutter = Tokenizer(WordLevel({**words, _RAW: len(vocabulary.tokens)}, unk_token=_RAW))
        add_specials(cutter, texts)
        cutters.append(cutter)
    return cutters[0], cutters[1]
