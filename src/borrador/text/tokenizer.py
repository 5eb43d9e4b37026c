"""Text to token ids and back, as the model's file says."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol

from borrador.errors import ModelError, UsageError
from borrador.text.byte_level import ByteLevelEncoder, decode_byte_level
from borrador.text.pretokenizers import find_pre_tokenizer
from borrador.text.sentencepiece import SPACE, SentencePieceEncoder, byte_of
from borrador.text.vocabulary import DAMAGED, TokenKind, Vocabulary, read_flag, read_vocabulary

_SILENT = frozenset({TokenKind.CONTROL, TokenKind.UNKNOWN, TokenKind.UNUSED})
_SENTENCEPIECE_IDS = {"unknown": 0, "bos": 1, "eos": 2}

MAX_CHARACTERS = 1 << 22  # more than any context holds; far longer runs of spaces overflow the regex engine


class Encoder(Protocol):
    """Turns checked text into token ids.

    Attributes:
        is_complete: every byte of a text is in the spelling of one of its tokens.
    """

    is_complete: bool

    def encode(self, text: str, *, specials: bool, starts_text: bool) -> list[int]: ...


class Tokenizer:
    """The tokenizer of one model. Immutable; safe to use from several threads.

    Attributes:
        bos_id: the token that begins a text, where the file has one.
        eos_id: the token that ends a text, where the file has one.
        eog_ids: every token that ends an answer.
        add_bos: prompts begin with `bos_id`.
        add_eos: complete texts end with `eos_id`; a prompt, which is to be continued, never does.
        add_space_prefix: texts are encoded with a space before them (SentencePiece).
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        encoder: Encoder,
        *,
        sentencepiece: bool,
        add_bos: bool,
        add_eos: bool,
        add_space_prefix: bool,
    ) -> None:
        self._vocabulary = vocabulary
        self._encoder = encoder
        self._sentencepiece = sentencepiece
        self.bos_id = vocabulary.bos_id
        self.eos_id = vocabulary.eos_id
        self.eog_ids = vocabulary.eog_ids
        self.add_bos = add_bos
        self.add_eos = add_eos
        self.add_space_prefix = add_space_prefix

    @classmethod
    def from_metadata(cls, metadata: Mapping[str, Any]) -> Tokenizer:
        """Build the tokenizer a GGUF file describes.

        Args:
            metadata: the file's keys and values; lists may be lists or arrays.

        Raises:
            ModelError: the kind of tokenizer is not supported, or its description is damaged.
        """
        kind = metadata.get("tokenizer.ggml.model")
        if kind == "gpt2":
            return _build_byte_level(metadata)
        if kind == "llama":
            return _build_sentencepiece(metadata)
        if kind is None:
            raise ModelError("the file must hold a tokenizer, tokenizer.ggml.model is missing", DAMAGED)
        raise ModelError(
            f"tokenizer model {kind!r:.60} is not supported, only gpt2 and llama", "Choose a model of another family."
        )

    @cached_property
    def _longest_token_bytes(self) -> float:
        """Infinite where bytes are left out, so that any text may have no token at all."""
        if not self._encoder.is_complete:
            return math.inf
        tokens, kinds = self._vocabulary.tokens, self._vocabulary.kinds
        if self._sentencepiece:
            return max(map(len, map(str.encode, tokens)))
        # Ordinary tokens have a character for each byte.
        return max(len(t if kind == TokenKind.NORMAL else t.encode()) for t, kind in zip(tokens, kinds, strict=True))

    @property
    def vocabulary_size(self) -> int:
        return len(self._vocabulary.tokens)

    @property
    def vocabulary(self) -> Sequence[str]:
        """The tokens by id, spelt as in the file."""
        return self._vocabulary.tokens

    def fingerprint(self) -> str:
        """A name for the vocabulary, in hexadecimal: equal where all tokens are, and else different."""
        digest = hashlib.sha256()
        for token in self._vocabulary.tokens:
            data = token.encode("utf-8", "surrogatepass")
            digest.update(len(data).to_bytes(4, "little") + data)
        return digest.hexdigest()

    def encode(self, text: str, *, specials: bool, starts_text: bool = True) -> list[int]:
        """The token ids of a text, without a beginning or end token.

        Args:
            specials: control tokens spelt out in the text (`<|im_start|>`) become these tokens, as a rendered chat
                template needs; otherwise they are ordinary characters.
            starts_text: False for text that continues another, which gets no space before it (`add_space_prefix`).

        Raises:
            UsageError: the text holds a lone surrogate, so it is not Unicode text, or more than `MAX_CHARACTERS`.
        """
        _check_text(text)
        return self._encoder.encode(text, specials=specials, starts_text=starts_text)

    def least_tokens(self, text: str) -> int:
        """How many tokens a text has at least, by its length alone; far sooner known than how many it has."""
        return math.ceil(len(text.encode(errors="replace")) / self._longest_token_bytes)

    def encode_prompt(self, text: str, *, specials: bool) -> list[int]:
        """As `encode`, begun with `bos_id` where the model wants it and the text does not begin so itself."""
        ids = self.encode(text, specials=specials)
        if self.add_bos and self.bos_id is not None and ids[:1] != [self.bos_id]:
            return [self.bos_id, *ids]
        return ids

    def decode(self, ids: Iterable[int], *, starts_text: bool = False) -> str:
        """The text of token ids; bytes that are not UTF-8 become U+FFFD, control tokens nothing.

        Args:
            starts_text: the ids are a whole text as `encode` gives it, so a space that it put in front is removed;
                otherwise they continue a text.
        """
        data = b"".join(map(self.token_bytes, ids))
        if starts_text and self.add_space_prefix:
            data = data.removeprefix(b" ")
        return data.decode(errors="replace")

    def spell(self, ids: Iterable[int]) -> str:
        """A whole text whose tokens these may be: as `decode`, but control tokens by name."""
        data = b"".join(self.token_bytes(token) or self._vocabulary.tokens[token].encode() for token in ids)
        return (data.removeprefix(b" ") if self.add_space_prefix else data).decode(errors="replace")

    def token_bytes(self, token_id: int) -> bytes:
        """What a token adds to the text: nothing for control tokens, and possibly only part of a UTF-8 character.

        Raises:
            ModelError: the id lies outside the vocabulary.
        """
        kind = self._kind(token_id)
        token = self._vocabulary.tokens[token_id]
        if kind in _SILENT:
            return b""
        if kind == TokenKind.USER_DEFINED:
            return token.encode()
        if not self._sentencepiece:
            return decode_byte_level(token)
        byte = byte_of(token) if kind == TokenKind.BYTE else None
        return token.replace(SPACE, " ").encode() if byte is None else bytes([byte])

    def token_text(self, token_id: int) -> str:
        """A token for people to read: control tokens by name, bytes that are no whole character as `\\xe2`."""
        if self._kind(token_id) in _SILENT:
            return self._vocabulary.tokens[token_id]
        return self.token_bytes(token_id).decode(errors="backslashreplace")

    def is_control(self, token_id: int) -> bool:
        """True for tokens that steer the model and are not part of the text."""
        return self._kind(token_id) in (TokenKind.CONTROL, TokenKind.UNKNOWN)

    def control_id(self, text: str) -> int | None:
        """The control token of this name; None where there is none."""
        token_id = self._vocabulary.ids.get(text)
        return token_id if token_id is not None and self.is_control(token_id) else None

    def is_padding(self, token_id: int) -> bool:
        """True for rows that only fill the vocabulary up: no model writes them."""
        self._kind(token_id)
        return self._vocabulary.is_padding(token_id)

    def _kind(self, token_id: int) -> int:
        if not 0 <= token_id < self.vocabulary_size:
            raise ModelError(
                f"a token id must be below the vocabulary's {self.vocabulary_size} tokens, got {token_id}", DAMAGED
            )
        return self._vocabulary.kinds[token_id]


def _check_text(text: str) -> None:
    if len(text) > MAX_CHARACTERS:
        raise UsageError(f"text must have at most {MAX_CHARACTERS} characters, got {len(text)}", "Shorten it.")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UsageError(
            f"text must be valid Unicode, character {error.start} is the lone surrogate {text[error.start]!a}",
            "Give the text as UTF-8.",
        ) from None


def first_difference(first: Tokenizer, second: Tokenizer) -> str | None:
    """The first token id two vocabularies disagree about, in words; None where they agree.

    They agree when every id means the same in both; rows that only pad a vocabulary count as missing.
    """
    a, b = first.vocabulary, second.vocabulary
    for i in range(max(len(a), len(b))):
        if i < len(a) and i < len(b) and a[i] == b[i]:
            continue
        texts = [_describe(tokenizer, i) for tokenizer in (first, second)]
        if texts[0] != texts[1]:
            return f"token {i} is {texts[0]} in the first vocabulary and {texts[1]} in the second"
    return None


def _describe(tokenizer: Tokenizer, token_id: int) -> str:
    missing = token_id >= tokenizer.vocabulary_size or tokenizer.is_padding(token_id)
    return "missing" if missing else repr(tokenizer.vocabulary[token_id])


def _build_byte_level(metadata: Mapping[str, Any]) -> Tokenizer:
    pre = find_pre_tokenizer(metadata.get("tokenizer.ggml.pre", ""))
    vocabulary = read_vocabulary(metadata, default_ids={})
    return Tokenizer(
        vocabulary,
        ByteLevelEncoder(vocabulary, metadata, pre),
        sentencepiece=False,
        add_bos=_adds_bos(metadata, vocabulary, pre.adds_bos),
        add_eos=read_flag(metadata, "tokenizer.ggml.add_eos_token", False),
        add_space_prefix=False,
    )


def _build_sentencepiece(metadata: Mapping[str, Any]) -> Tokenizer:
    vocabulary = read_vocabulary(metadata, default_ids=_SENTENCEPIECE_IDS)
    add_space_prefix = read_flag(metadata, "tokenizer.ggml.add_space_prefix", True)
    return Tokenizer(
        vocabulary,
        SentencePieceEncoder(vocabulary, metadata, add_space_prefix=add_space_prefix),
        sentencepiece=True,
        add_bos=_adds_bos(metadata, vocabulary, True),
        add_eos=read_flag(metadata, "tokenizer.ggml.add_eos_token", False),
        add_space_prefix=add_space_prefix,
    )


def _adds_bos(metadata: Mapping[str, Any], vocabulary: Vocabulary, default: bool) -> bool:
    key = "tokenizer.ggml.add_bos_token"
    adds_bos = read_flag(metadata, key, default)
    if adds_bos and vocabulary.bos_id is None:
        if key in metadata:
            raise ModelError(f"{key} is set, so tokenizer.ggml.bos_token_id must be given, it is missing", DAMAGED)
        return False
    return adds_bos
