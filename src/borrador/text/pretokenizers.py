"""How byte-level vocabularies cut text into words before merging: the values of `tokenizer.ggml.pre`.

The patterns are those the models were trained with; llama.cpp's file format gives them their names
(https://github.com/ggml-org/llama.cpp/pull/6920).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from borrador.errors import ModelError

_CONTRACTIONS = r"'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]"
_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


def _tiktoken_style(digits: str) -> str:
    return (
        rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|{digits}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*"
        r"|\s*[\r\n]+|\s+(?!\S)|\s+"
    )


@dataclass(frozen=True, slots=True)
class PreTokenizer:
    """How text is cut into words.

    Attributes:
        patterns: applied one after the other, each to the pieces the one before it left.
        whole_words: a word that is a token stays whole, whatever the merges say.
        adds_bos: prompts start with the beginning-of-text token unless the file says otherwise.
    """

    patterns: tuple[str, ...]
    whole_words: bool = False
    adds_bos: bool = False


_LLAMA3 = PreTokenizer((_tiktoken_style(r"\p{N}{1,3}"),), whole_words=True, adds_bos=True)
_QWEN2 = PreTokenizer((_tiktoken_style(r"\p{N}"),))
_DIGITS_APART = PreTokenizer((r"\p{N}", _GPT2))
_DEFAULT = PreTokenizer((r"[\p{P}\$\+<=>\^~\|]+", _GPT2, r"\p{N}+", r"[0-9][0-9][0-9]"))

PRE_TOKENIZERS: dict[str, PreTokenizer] = {
    "default": _DEFAULT,
    "llama-bpe": _LLAMA3,
    "qwen2": _QWEN2,
    "smollm": _DIGITS_APART,
}
_ALIASES = {
    "": "default",
    "llama3": "llama-bpe",
    "llama-v3": "llama-bpe",
    "falcon3": "llama-bpe",
    "pixtral": "llama-bpe",
    "lfm2": "llama-bpe",
    "deepseek-r1-qwen": "qwen2",
    "megrez": "qwen2",
    "starcoder": "smollm",
    "refact": "smollm",
}


def find_pre_tokenizer(name: Any) -> PreTokenizer:
    """The pre-tokenizer a file names. Raises ModelError where it is unknown."""
    found = PRE_TOKENIZERS.get(_ALIASES.get(name, name)) if isinstance(name, str) else None
    if found is None:
        supported = ", ".join(PRE_TOKENIZERS)
        raise ModelError(
            f"pre-tokenizer {name!r:.60} is not supported, only {supported}", "Choose a model of another family."
        )
    return found
