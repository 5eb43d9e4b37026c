"""The tokens before a row of logits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from borrador.types import Int32Array


@dataclass(frozen=True, slots=True)
class History:
    """The tokens before a row, without copying them.

    Attributes:
        context: prompt and answer so far.
        path: the draft tokens between the context and the row.
    """

    context: Sequence[int] = ()
    path: Sequence[int] = ()

    @property
    def position(self) -> int:
        """How many tokens come before the row: the position of the token chosen there."""
        return len(self.context) + len(self.path)


class TokenWindow:
    """The last tokens of histories as an array, without converting a context more than once.

    Args:
        size: how many tokens; -1 is all.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._context: Sequence[int] = ()
        self._known = 0
        self._tokens = np.empty(256, np.int32)

    def before(self, history: History) -> Int32Array:
        """The window of a history, valid until the next call."""
        self._follow(history.context, len(history.path))
        end = history.position
        self._tokens[self._known : end] = history.path
        return self._tokens[max(end - self._size, 0) if self._size >= 0 else 0 : end]

    def _follow(self, context: Sequence[int], more: int) -> None:
        if context is not self._context:
            self._context, self._known = context, 0
        self._known = min(self._known, len(context))
        if len(context) + more > len(self._tokens):
            grown = np.empty(2 * (len(context) + more), np.int32)
            grown[: self._known] = self._tokens[: self._known]
            self._tokens = grown
        self._tokens[self._known : len(context)] = context[self._known :]
        self._known = len(context)
