"""SentencePiece-style encoding (Kudo and Richardson, arXiv 1808.06226) on the `sentencepiece` library."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from borrador.errors import ModelError
from borrador.text.byte_level import add_specials, special_tokens
from borrador.text.sentencepiece_model import write_model
from borrador.text.vocabulary import DAMAGED, TokenKind, Vocabulary, read_numbers

if TYPE_CHECKING:
    import sentencepiece
    import tokenizers

SPACE = "▁"
_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_BYTES = frozenset(f"<0x{byte:02X}>" for byte in range(256))
_NEVER_MERGED = (TokenKind.UNKNOWN, TokenKind.CONTROL, TokenKind.BYTE)
_RAW = "\0raw text\0"
_UNKNOWN = "\uffffunknown\uffff"


def byte_of(token: str) -> int | None:
    """The byte a byte-fallback token such as `<0x0A>` stands for."""
    found = _BYTE.fullmatch(token)
    return int(found[1], 16) if found else None


class SentencePieceEncoder:
    """Text to token ids. Characters without a token become their bytes, or unknown where bytes have no tokens."""

    def __init__(self, vocabulary: Vocabulary, metadata: Mapping[str, Any], *, add_space_prefix: bool) -> None:
        scores = read_numbers(metadata, "tokenizer.ggml.scores", len(vocabulary.tokens), "fiu")
        self.is_complete = vocabulary.ids.keys() >= _BYTES
        self._beyond = len(vocabulary.tokens)
        self._unknown_id = vocabulary.unknown_id or 0
        self._prefix = " " if add_space_prefix else ""
        self._processor = _build_processor(vocabulary, scores, byte_fallback=self.is_complete)
        self._cutters = _build_cutters(vocabulary)

    def encode(self, text: str, *, specials: bool, starts_text: bool) -> list[int]:
        # A batch, although of one: for it the library lets go of the interpreter, which long texts would stop else.
        cuts = self._cutters[specials].encode_batch([text], add_special_tokens=False)[0]
        ids: list[int] = []
        for token_id, (start, end) in zip(cuts.ids, cuts.offsets, strict=True):
            if token_id == self._beyond:
                prefix = self._prefix if start or starts_text else ""
                ids += self._processor.encode(prefix + text[start:end])
            else:
                ids.append(token_id)
        return ids if self.is_complete else [self._unknown_id if i == self._beyond else i for i in ids]


def _build_processor(
    vocabulary: Vocabulary, scores: Sequence[float], *, byte_fallback: bool
) -> sentencepiece.SentencePieceProcessor:
    """What merges pieces; characters without any get the id after the last."""
    from sentencepiece import SentencePieceProcessor

    texts = [*vocabulary.tokens, _UNKNOWN]
    kinds = [*_piece_kinds(vocabulary, byte_fallback=byte_fallback), int(TokenKind.UNKNOWN)]
    try:
        return SentencePieceProcessor(
            model_proto=write_model(texts, [*scores, 0.0], kinds, byte_fallback=byte_fallback)
        )
    except (RuntimeError, OverflowError) as error:
        raise ModelError(f"tokens and scores must be a SentencePiece vocabulary: {error}", DAMAGED) from None


def _piece_kinds(vocabulary: Vocabulary, *, byte_fallback: bool) -> list[int]:
    """NORMAL pieces are what text is merged into, CONTROL pieces what it never is."""
    kinds = np.where(np.isin(vocabulary.kinds, _NEVER_MERGED), TokenKind.CONTROL, TokenKind.NORMAL)
    if byte_fallback:
        kinds[[vocabulary.ids[text] for text in _BYTES]] = TokenKind.BYTE
    numbers: list[int] = kinds.tolist()
    return numbers


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
