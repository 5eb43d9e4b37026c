"""Follows an answer through its grammar, and looks ahead along drafts."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import numpy as np

from borrador.errors import UsageError
from borrador.sampling.shaping import History
from borrador.types import UInt32Array

if TYPE_CHECKING:
    from llguidance import LLMatcher

_WORD_BITS = 32


class Matcher:
    """The grammar of one answer. What follows depends on the answer's tokens alone, not on drafts it was asked about.

    Args:
        matcher: the library's, at the answer's beginning.
        vocabulary_size: tokens that masks tell about.
        start: tokens before the answer.
        end_ids: tokens that end an answer; they are no text.
    """

    def __init__(self, matcher: LLMatcher, vocabulary_size: int, start: int, end_ids: Collection[int]) -> None:
        self._matcher = matcher
        self._words = -(-vocabulary_size // _WORD_BITS)
        self._everything = np.full(self._words, 0xFFFFFFFF, np.uint32)
        self._committed = start
        self._end_ids = end_ids
        self._ahead: list[int] = []  # what the library's matcher has consumed after the committed tokens
        self._masks: dict[tuple[int, ...], UInt32Array] = {}

    def is_complete(self, history: History | None = None, /) -> bool:
        """Nothing may follow, here or after the committed tokens, but the answer's end."""
        return self._seek(self._path(history) if history else ()) and self._matcher.is_stopped()

    def commit(self, token: int) -> None:
        """Make a token that the grammar allows part of the answer."""
        if not self._seek((token,)):
            raise ValueError(f"token {token} is not allowed here")
        self._ahead.clear()
        self._masks = {path[1:]: mask for path, mask in self._masks.items() if path[:1] == (token,)}
        self._committed += 1

    def mask(self, history: History, /) -> UInt32Array:
        """As `borrador.sampling.shaping.RowMasks` wants it; all are allowed after a token that is not, and after the
        answer's end.

        Raises:
            UsageError: the grammar is too complex to be followed here.
        """
        path = self._path(history)
        if path not in self._masks:
            self._masks[path] = self._compute_mask() if self._seek(path) else self._everything
        return self._masks[path]

    def forced(self, history: History, limit: int, /) -> tuple[int, ...]:
        """As `borrador.sampling.shaping.RowMasks` wants it; the answer's end is not among them."""
        tokens: list[int] = []
        while len(tokens) < limit:
            token = _only_token(self.mask(History(history.context, (*history.path, *tokens))))
            if token is None or token in self._end_ids:
                break
            tokens.append(token)
        return tuple(tokens)

    def allowed(self, context: Sequence[int], path: Sequence[int]) -> int:
        """How many tokens of a path the grammar allows after the context."""
        whole = self._path(History(context, path))
        self._seek(whole)
        return max(len(self._ahead) - (len(whole) - len(path)), 0)

    def _path(self, history: History) -> tuple[int, ...]:
        return (*history.context[self._committed :], *history.path)

    def _seek(self, path: Sequence[int]) -> bool:
        """Bring the library's matcher behind the committed tokens and a path, or behind as much of it as is allowed.

        Raises:
            UsageError: the grammar is too complex to be followed there.
        """
        common = 0
        while common < min(len(path), len(self._ahead)) and path[common] == self._ahead[common]:
            common += 1
        surplus = len(self._ahead) - common
        if surplus:
            self._matcher.rollback(surplus)
            del self._ahead[common:]
        wanted = list(path[common:])
        if wanted:
            self._ahead += wanted[: self._matcher.try_consume_tokens(wanted)]
            self._require_followed()
        return len(self._ahead) == len(path)

    def _compute_mask(self) -> UInt32Array:
        words = np.empty(self._words, np.uint32)
        self._matcher.unsafe_compute_mask_ptr(words.ctypes.data, words.nbytes)
        self._require_followed()
        return words

    def _require_followed(self) -> None:
        """Raise UsageError where the library has reached one of its limits."""
        if self._matcher.is_error():
            reason = self._matcher.get_error().splitlines()[0]
            raise UsageError(f"the answer's shape cannot be followed any further: {reason:.300}", "Simplify it.")


def _only_token(mask: UInt32Array) -> int | None:
    """The token of a mask that allows exactly one; else None."""
    (filled,) = mask.nonzero()
    if len(filled) != 1:
        return None
    word = int(mask[filled[0]])
    return int(filled[0]) * _WORD_BITS + word.bit_length() - 1 if word & (word - 1) == 0 else None
