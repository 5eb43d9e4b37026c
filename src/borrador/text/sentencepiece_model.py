"""A vocabulary as the protocol buffer that the `sentencepiece` library reads.

Fields: https://github.com/google/sentencepiece/blob/master/src/sentencepiece_model.proto
Their encoding: https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterable, Iterator
from itertools import repeat

_PIECE, _TRAINER, _NORMALIZER = 1, 2, 3  # of a model
_TEXT, _SCORE, _KIND = 1, 2, 3  # of a piece
_MODEL_TYPE, _BYTE_FALLBACK = 3, 35  # of the trainer
_ADD_DUMMY_PREFIX, _REMOVE_EXTRA_WHITESPACES = 3, 4  # of the normalizer
_BYTE_PAIR_ENCODING = 2
_INTEGER, _BYTES, _FLOAT = 0, 2, 5  # how fields are encoded


def write_model(texts: Iterable[str], scores: Iterable[float], kinds: Iterable[int], *, byte_fallback: bool) -> bytes:
    """A model that merges the best-scored neighbours first and changes no text, but that spaces become `▁`.

    Args:
        texts: of the pieces, by id.
        scores: of the pieces; they must fit into 32-bit floating-point numbers.
        kinds: of the pieces, numbered as `TokenKind`.
        byte_fallback: what no piece spells becomes pieces of the kind BYTE, of which there must be one for each byte.
    """
    trainer = _integer(_MODEL_TYPE, _BYTE_PAIR_ENCODING) + _integer(_BYTE_FALLBACK, byte_fallback)
    normalizer = _integer(_ADD_DUMMY_PREFIX, False) + _integer(_REMOVE_EXTRA_WHITESPACES, False)
    ends = [_head(_TRAINER, len(trainer)), trainer, _head(_NORMALIZER, len(normalizer)), normalizer]
    return b"".join([*_pieces(texts, scores, kinds), *ends])


def _pieces(texts: Iterable[str], scores: Iterable[float], kinds: Iterable[int]) -> Iterator[bytes]:
    """There are hundreds of thousands of them: what they have in common is computed once."""
    pack = struct.Struct("<BfBB").pack
    tails = map(pack, repeat(_SCORE << 3 | _FLOAT), scores, repeat(_KIND << 3 | _INTEGER), kinds)
    for text, tail in zip(map(str.encode, texts), tails, strict=True):
        yield _piece_head(len(text), len(tail)) + text + tail


@functools.cache
def _piece_head(text_bytes: int, tail_bytes: int) -> bytes:
    text_head = _head(_TEXT, text_bytes)
    return _head(_PIECE, len(text_head) + text_bytes + tail_bytes) + text_head


def _head(field: int, size: int) -> bytes:
    return _varint(field << 3 | _BYTES) + _varint(size)


def _integer(field: int, value: int) -> bytes:
    return _varint(field << 3 | _INTEGER) + _varint(value)


def _varint(value: int) -> bytes:
    """Seven bits a byte, the lowest first; the eighth says that more follow."""
    return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + _varint(value >> 7)
