"""Whether memory for keys and values suffices."""

from __future__ import annotations

from collections.abc import Iterable

from borrador.models.memory import available_bytes
from borrador.models.prefix import SequencePool
from borrador.models.target import Model

_SHARE = 0.5  # of the memory that is free, for keys and values of a server; draft models have some too
_AHEAD = 16  # tokens; requests that must make room soon after they were admitted cost more than they bring


class CacheRoom:
    """The memory that the sequences on a model may take together; those that lie idle make way for others.

    Args:
        model: whose memory it is.
        pool: of the sequences on it.
    """

    def __init__(self, model: Model, pool: SequencePool) -> None:
        self._model = model
        self._pool = pool

    def can_ever_hold(self, tokens: int) -> bool:
        """Whether a sequence of so many tokens fits if it is alone."""
        limit_bytes = self._model.cache_usage().limit_bytes
        return limit_bytes is None or self._model.cache_bytes(tokens) <= limit_bytes

    def has(self, growth: Iterable[tuple[int, int]]) -> bool:
        """Whether sequences can grow, each from so many tokens to so many, and a few more to go on with.

        Idle sequences are dropped where that is needed.
        """
        bytes_of = self._model.cache_bytes
        needed = sum(bytes_of(wanted + _AHEAD) - bytes_of(held) for held, wanted in growth)
        while True:
            used, limit = self._model.cache_usage()
            if limit is None or used + needed <= limit:
                return True
            if not self._pool.reclaim():
                return False


def share_of_free(model: Model, context_length: int) -> int | None:
    """Bytes for keys and values where nobody says how many: a part of what is free, and enough for one answer."""
    free = available_bytes()
    return None if free is None else max(int(_SHARE * free), model.cache_bytes(context_length))
