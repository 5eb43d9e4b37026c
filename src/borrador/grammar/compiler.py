"""Grammars over one model's vocabulary."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from borrador.grammar.matcher import Matcher
from borrador.grammar.source import not_enforceable, source_of
from borrador.grammar.stack import with_deep_stack
from borrador.text.tokenizer import Tokenizer
from borrador.types import SamplingParams

if TYPE_CHECKING:
    from llguidance import LLTokenizer


class GrammarCompiler:
    """Opens matchers. Safe to use from several threads.

    The vocabulary is arranged for matching when the first matcher is opened, which takes some tenths of a second.

    Args:
        tokenizer: of the target.
        vocabulary_size: of the target; tokens that the tokenizer lacks never match.
    """

    def __init__(self, tokenizer: Tokenizer, vocabulary_size: int) -> None:
        self._tokenizer = tokenizer
        self._vocabulary_size = vocabulary_size
        self._lock = threading.Lock()
        self._arranged: LLTokenizer | None = None

    def open(self, params: SamplingParams, start: int) -> Matcher | None:
        """A matcher for an answer of the shape that `params` ask for; None where they ask for none.

        Args:
            params: of the request.
            start: tokens before the answer.

        Raises:
            UsageError: the shape cannot be enforced.
        """
        source = source_of(params)
        if source is None:
            return None
        from llguidance import LLMatcher, LLParserLimits

        name, grammar = source
        with self._lock:
            self._arranged = self._arranged or _arrange(self._tokenizer, self._vocabulary_size)
            vocabulary = self._arranged
        limits = LLParserLimits(verbose_errors=False)
        library_matcher = with_deep_stack(lambda: LLMatcher(vocabulary, grammar, log_level=0, limits=limits))
        library_matcher.compute_bitmask()
        if library_matcher.is_error():
            raise not_enforceable(name, library_matcher.get_error())
        return Matcher(library_matcher, vocabulary.vocab_size, start, self._tokenizer.eog_ids)


class _TokenTable:
    """What the library asks of a tokenizer: the bytes of every token, and the tokens that text is usually made of."""

    is_tokenizer_wrapper = True

    def __init__(self, tokenizer: Tokenizer, vocabulary_size: int) -> None:
        known = range(min(tokenizer.vocabulary_size, vocabulary_size))
        missing = vocabulary_size - len(known)
        texts = [tokenizer.token_bytes(token) for token in known]
        self.eos_token_id = tokenizer.eos_id
        self.bos_token_id = tokenizer.bos_id
        self.special_token_ids = [token for token in range(vocabulary_size) if token >= len(known) or not texts[token]]
        self.tokens = [text or tokenizer.token_text(token).encode() for token, text in zip(known, texts, strict=True)]
        self.tokens += [b""] * missing
        self._tokenizer = tokenizer

    def __call__(self, text: str) -> list[int]:
        return self._tokenizer.encode(text, specials=False, starts_text=False)


def _arrange(tokenizer: Tokenizer, vocabulary_size: int) -> LLTokenizer:
    from llguidance import LLTokenizer

    table = _TokenTable(tokenizer, vocabulary_size)
    return LLTokenizer(table, eos_token=sorted(tokenizer.eog_ids) or None)  # type: ignore[arg-type]
