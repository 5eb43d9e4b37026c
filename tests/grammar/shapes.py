"""Matchers over small vocabularies, and what they ought to say."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from itertools import product

import numpy as np
from tests.scripted import LETTERS, letter_tokenizer

from borrador.grammar.compiler import GrammarCompiler
from borrador.grammar.matcher import Matcher
from borrador.sampling.shaping import History
from borrador.text.tokenizer import Tokenizer
from borrador.types import SamplingParams, UInt32Array


def open_matcher(
    params: SamplingParams, *, tokenizer: Tokenizer | None = None, start: int = 0, vocabulary_size: int | None = None
) -> Matcher:
    """A matcher over the alphabet a to o and its end token, or over another vocabulary."""
    tokenizer = tokenizer or letter_tokenizer()
    matcher = GrammarCompiler(tokenizer, vocabulary_size or tokenizer.vocabulary_size).open(params, start)
    assert matcher is not None
    return matcher


def tokens_of(mask: UInt32Array, vocabulary_size: int) -> set[int]:
    """The tokens a mask allows."""
    return {token for token in range(vocabulary_size) if mask[token // 32] >> np.uint32(token % 32) & np.uint32(1)}


def allowed_after(matcher: Matcher, path: Sequence[int], context: Sequence[int] = ()) -> set[int]:
    return tokens_of(matcher.mask(History(context, path)), len(LETTERS) + 1)


def reference(pattern: str, letters: str, longest: int) -> Callable[[str], set[str]]:
    """What may follow a text so that a whole match of at most `longest` letters remains possible; `!` is its end.

    All texts are tried, with the regular expressions of the standard library.
    """
    matches = [
        "".join(text)
        for length in range(longest + 1)
        for text in product(letters, repeat=length)
        if re.fullmatch(pattern, "".join(text))
    ]

    @cache
    def follow(text: str) -> set[str]:
        return {(match + "!")[len(text)] for match in matches if match.startswith(text)}

    return follow
