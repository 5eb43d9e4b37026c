"""The vocabulary of a GGUF file, read and checked: tokens, their kinds, and the ids with a meaning.

Keys and kinds: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md (section "GGML" of the tokenizer keys).
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from borrador.errors import ModelError

DAMAGED = "The file's tokenizer is damaged; download the model again."

# Tokens that end an answer wherever they are control tokens.
_END_NAMES = frozenset(
    {
        "<|im_end|>",
        "<|endoftext|>",
        "<|end_of_text|>",
        "<|eot_id|>",
        "<|eom_id|>",
        "<|end|>",
        "<|return|>",
        "<|call|>",
        "<|calls|>",
        "<|flush|>",
        "<end_of_turn>",
        "<end_of_utterance>",
        "<｜end▁of▁sentence｜>",  # noqa: RUF001 - DeepSeek writes wide bars
        "</s>",
        "<eos>",
        "<EOT>",
        "_<EOT>",
        "▁<EOT>",
        "[EOT]",
        "[EOS]",
        "<|fim_pad|>",
        "<fim-pad>",
        "<fim_pad>",
        "<|fim_repo|>",
        "<|repo_name|>",
        "<fim-repo>",
        "<REPO>",
        "<reponame>",
        "<|file_sep|>",
    }
)
# Of these, the ones no model writes as text: they are control tokens even where a converter forgot to say so.
_ALWAYS_CONTROL = frozenset(name for name in _END_NAMES if name.startswith("<|")) | {"<end_of_turn>"}
_PADDING = re.compile(r"\[PAD\d+\]|<unused_?\d+>|<\|?dummy_?\d+\|?>")


class TokenKind(enum.IntEnum):
    """What a token is, numbered as in `tokenizer.ggml.token_type`."""

    UNDEFINED = 0
    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """Tokens by id. `ids` is the inverse of `tokens`; every id named here lies inside the vocabulary."""

    tokens: Sequence[str]
    kinds: Sequence[int]
    ids: Mapping[str, int]
    bos_id: int | None
    eos_id: int | None
    unknown_id: int | None
    padding_id: int | None
    eog_ids: frozenset[int]

    def is_padding(self, token_id: int) -> bool:
        """True for rows that only fill the table up: no model writes them."""
        return self.kinds[token_id] == TokenKind.UNUSED or _PADDING.fullmatch(self.tokens[token_id]) is not None

    def of_kind(self, *kinds: TokenKind) -> list[str]:
        """The tokens of these kinds, in order of id."""
        return [self.tokens[i] for i, kind in enumerate(self.kinds) if kind in kinds]


def read_vocabulary(metadata: Mapping[str, Any], *, default_ids: Mapping[str, int]) -> Vocabulary:
    """Read the vocabulary.

    Args:
        default_ids: ids that hold where the file does not give them, such as {"bos": 1}.

    Raises:
        ModelError: a list is missing, lists differ in length, tokens repeat, an id lies outside the vocabulary.
    """
    tokens = _read_tokens(metadata)
    ids = {token: i for i, token in enumerate(tokens)}
    if len(ids) != len(tokens):
        twice = next(token for i, token in enumerate(tokens) if ids[token] != i)
        raise ModelError(f"every token must occur once in tokenizer.ggml.tokens, {twice!r} occurs twice", DAMAGED)
    kinds = _read_kinds(metadata, tokens, ids)
    named = {name: _read_id(metadata, name, len(tokens), default_ids.get(name)) for name in _ID_NAMES}
    return Vocabulary(
        tokens=tokens,
        kinds=kinds,
        ids=ids,
        bos_id=named["bos"],
        eos_id=named["eos"],
        unknown_id=named["unknown"],
        padding_id=named["padding"],
        eog_ids=_end_ids(ids, kinds, [named[name] for name in ("eos", "eot", "eom")]),
    )


_ID_NAMES = ("bos", "eos", "eot", "eom", "unknown", "padding")


def read_strings(metadata: Mapping[str, Any], key: str) -> list[str]:
    """The list of strings under `key`. Raises ModelError where it is missing or something else."""
    values = _read_list(metadata, key)
    if not all(type(value) is str for value in values):
        raise ModelError(f"{key} must hold strings only", DAMAGED)
    strings: list[str] = list(values)
    try:
        "\n".join(strings).encode()
    except UnicodeEncodeError:
        raise ModelError(f"{key} must be valid UTF-8", DAMAGED) from None
    return strings


def read_numbers(metadata: Mapping[str, Any], key: str, count: int, kinds: str) -> list[Any]:
    """The list of `count` finite numbers under `key`; `kinds` are NumPy kind letters ("iu", "fiu")."""
    values = _read_list(metadata, key)
    if len(values) != count:
        raise ModelError(f"{key} must have one entry per token, {count}, got {len(values)}", DAMAGED)
    try:
        array = np.asarray(values)
    except (ValueError, OverflowError):
        array = np.empty(0, object)
    if array.ndim != 1 or array.dtype.kind not in kinds or not np.isfinite(array).all():
        raise ModelError(f"{key} must hold finite numbers only", DAMAGED)
    numbers: list[Any] = array.tolist()
    return numbers


def read_flag(metadata: Mapping[str, Any], key: str, default: bool) -> bool:
    """The truth value under `key`. Raises ModelError where it is something else."""
    value = metadata.get(key, default)
    if not isinstance(value, bool | np.bool_):
        raise ModelError(f"{key} must be true or false, got {value!r:.40}", DAMAGED)
    return bool(value)


def _read_list(metadata: Mapping[str, Any], key: str) -> Sequence[Any]:
    if key not in metadata:
        raise ModelError(f"{key} is missing from the file", DAMAGED)
    values = metadata[key]
    if not isinstance(values, list | tuple | np.ndarray):
        raise ModelError(f"{key} must be a list, got {type(values).__name__}", DAMAGED)
    sequence: Sequence[Any] = values  # type: ignore[assignment]  # a 1-D array counts as one
    return sequence


def _read_tokens(metadata: Mapping[str, Any]) -> list[str]:
    tokens = read_strings(metadata, "tokenizer.ggml.tokens")
    if not tokens:
        raise ModelError("tokenizer.ggml.tokens must have at least one token, got none", DAMAGED)
    return [token or f"[EMPTY_{i}]" for i, token in enumerate(tokens)]


def _read_kinds(metadata: Mapping[str, Any], tokens: Sequence[str], ids: Mapping[str, int]) -> list[int]:
    key = "tokenizer.ggml.token_type"
    kinds = read_numbers(metadata, key, len(tokens), "iu") if key in metadata else [int(TokenKind.NORMAL)] * len(tokens)
    for name in _ALWAYS_CONTROL & ids.keys():
        kinds[ids[name]] = int(TokenKind.CONTROL)
    return kinds


def _read_id(metadata: Mapping[str, Any], name: str, count: int, default: int | None) -> int | None:
    key = f"tokenizer.ggml.{name}_token_id"
    if key not in metadata:
        return default if default is not None and default < count else None
    value = metadata[key]
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise ModelError(f"{key} must be a token id, got {value!r:.40}", DAMAGED)
    if not 0 <= value < count:
        raise ModelError(f"{key} must be below the vocabulary's {count} tokens, got {value}", DAMAGED)
    return int(value)


def _end_ids(ids: Mapping[str, int], kinds: Sequence[int], declared: Sequence[int | None]) -> frozenset[int]:
    by_name = {ids[name] for name in _END_NAMES & ids.keys() if kinds[ids[name]] == TokenKind.CONTROL}
    if {"<|return|>", "<|call|>", "<|end|>"} <= ids.keys():
        by_name.remove(ids["<|end|>"])  # in the Harmony format it only ends a message inside the answer
    return frozenset(by_name | {i for i in declared if i is not None})
