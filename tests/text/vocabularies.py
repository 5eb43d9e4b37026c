"""Small vocabularies, written down as GGUF metadata."""

from __future__ import annotations

from typing import Any

from borrador.text.byte_level import BYTE_OF
from borrador.text.vocabulary import TokenKind

NORMAL, UNKNOWN, CONTROL = TokenKind.NORMAL, TokenKind.UNKNOWN, TokenKind.CONTROL
USER_DEFINED, UNUSED, BYTE = TokenKind.USER_DEFINED, TokenKind.UNUSED, TokenKind.BYTE

_MERGES = ["t h", "th e", "Ġ the", "h e", "l l", "he ll", "hell o", "1 2", "12 3", "123 4", "Ċ Ċ"]


def byte_level(pre: str = "qwen2", pairs: list[str] | None = None, **more: Any) -> dict[str, Any]:
    """256 byte tokens in byte order (id = byte), one token per merging pair, then the special tokens of a chat model.

    `more` replaces or adds `tokenizer.ggml.*` keys; None removes one.
    """
    pairs = _MERGES if pairs is None else pairs
    words = [*sorted(BYTE_OF, key=BYTE_OF.__getitem__), *(pair.replace(" ", "") for pair in pairs)]
    specials = {"<|endoftext|>": CONTROL, "<|im_start|>": CONTROL, "<|im_end|>": CONTROL, "<tool>": USER_DEFINED}
    keys = {
        "model": "gpt2",
        "pre": pre,
        "tokens": [*words, *specials],
        "token_type": [int(NORMAL)] * len(words) + [int(kind) for kind in specials.values()],
        "merges": pairs,
        "eos_token_id": len(words) + 2,
        "bos_token_id": len(words),
    }
    return _metadata(keys | more)


def sentencepiece(pieces: dict[str, float] | None = None, **more: Any) -> dict[str, Any]:
    """`<unk>`, `<s>`, `</s>`, 256 byte tokens (id = byte + 3), then pieces with their scores, then `<tag>`."""
    if pieces is None:
        pieces = {"▁": -9, "a": -9, "b": -9, "ab": -1, "ba": -2, "▁a": -3, "▁ab": -4, "aba": -5, "é": -6}
    first = [("<unk>", UNKNOWN), ("<s>", CONTROL), ("</s>", CONTROL), *((f"<0x{b:02X}>", BYTE) for b in range(256))]
    rows = [*((text, kind, 0.0) for text, kind in first), *((text, NORMAL, score) for text, score in pieces.items())]
    rows.append(("<tag>", USER_DEFINED, 0.0))
    keys = {
        "model": "llama",
        "tokens": [text for text, _, _ in rows],
        "token_type": [int(kind) for _, kind, _ in rows],
        "scores": [score for _, _, score in rows],
    }
    return _metadata(keys | more)


def _metadata(keys: dict[str, Any]) -> dict[str, Any]:
    return {f"tokenizer.ggml.{key}": value for key, value in keys.items() if value is not None}
