"""Byte-level byte-pair encoding (Radford et al. 2019, GPT-2) on the `tokenizers` library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from borrador.errors import ModelError
from borrador.text.pretokenizers import PreTokenizer
from borrador.text.vocabulary import DAMAGED, TokenKind, Vocabulary, read_strings

if TYPE_CHECKING:
    import tokenizers

_UNKNOWN = "\0unknown byte\0"  # NUL is never part of a byte-level token


def _byte_alphabet() -> dict[str, int]:
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + i): byte for i, byte in enumerate(hidden)}


BYTE_OF = _byte_alphabet()


def decode_byte_level(token: str) -> bytes:
    """The bytes a token stands for; characters outside the byte alphabet stand for themselves."""
    try:
        return bytes(map(BYTE_OF.__getitem__, token))
    except KeyError:
        return b"".join(bytes([BYTE_OF[c]]) if c in BYTE_OF else c.encode() for c in token)


class ByteLevelEncoder:
    """Text to token ids. Bytes the vocabulary lacks are left out, as llama.cpp does."""

    def __init__(self, vocabulary: Vocabulary, metadata: Mapping[str, Any], pre: PreTokenizer) -> None:
        from tokenizers import Tokenizer

        model = _build_model(vocabulary, _read_merges(metadata), pre)
        self.is_complete = BYTE_OF.keys() <= vocabulary.ids.keys()
        self._unknown_id = len(vocabulary.tokens)
        user_defined, control = special_tokens(vocabulary)
        self._tokenizers = Tokenizer(model), Tokenizer(model)
        for tokenizer, texts in zip(self._tokenizers, (user_defined, user_defined + control), strict=True):
            tokenizer.pre_tokenizer = _build_pre_tokenizer(pre)
            add_specials(tokenizer, texts)

    def encode(self, text: str, *, specials: bool, starts_text: bool) -> list[int]:  # noqa: ARG002 - all begin alike
        # A batch, although of one: for it the library lets go of the interpreter, which long texts would stop else.
        ids: list[int] = self._tokenizers[specials].encode_batch_fast([text], add_special_tokens=False)[0].ids
        return ids if self.is_complete else [i for i in ids if i != self._unknown_id]


def special_tokens(vocabulary: Vocabulary) -> tuple[list[str], list[str]]:
    """The tokens that are cut out of any text, and those that are only where specials are recognised."""
    user_defined = vocabulary.of_kind(TokenKind.USER_DEFINED)
    return user_defined, vocabulary.of_kind(TokenKind.CONTROL, TokenKind.UNKNOWN)


def add_specials(tokenizer: tokenizers.Tokenizer, texts: Sequence[str]) -> None:
    """Make a tokenizer cut these tokens out of the text before anything else, the longest at each place."""
    from tokenizers import AddedToken

    tokenizer.add_tokens([AddedToken(text, normalized=False) for text in texts])


def _read_merges(metadata: Mapping[str, Any]) -> list[tuple[str, str]]:
    key = "tokenizer.ggml.merges"
    pairs = [tuple(merge.split(" ")) for merge in dict.fromkeys(read_strings(metadata, key))]
    broken = next((pair for pair in pairs if len(pair) != 2 or not all(pair)), None)
    if broken is not None:
        raise ModelError(f"every entry of {key} must be two tokens, got {' '.join(broken)!r:.60}", DAMAGED)
    return pairs  # type: ignore[return-value]  # the lengths were just checked


def _build_model(vocabulary: Vocabulary, merges: Sequence[tuple[str, str]], pre: PreTokenizer) -> tokenizers.models.BPE:
    from tokenizers.models import BPE

    ids = {**vocabulary.ids, _UNKNOWN: len(vocabulary.tokens)}
    try:
        return BPE(ids, list(merges), unk_token=_UNKNOWN, ignore_merges=pre.whole_words)
    except Exception as error:  # noqa: BLE001 - the library raises plain Exception
        raise ModelError(f"tokenizer.ggml.merges must resolve to tokens: {error}", DAMAGED) from None


def _build_pre_tokenizer(pre: PreTokenizer) -> tokenizers.pre_tokenizers.PreTokenizer:
    from tokenizers import Regex
    from tokenizers.pre_tokenizers import ByteLevel, Sequence, Split

    cuts = [Split(Regex(pattern), "isolated") for pattern in pre.patterns]
    return Sequence([*cuts, ByteLevel(add_prefix_space=False, use_regex=False)])
