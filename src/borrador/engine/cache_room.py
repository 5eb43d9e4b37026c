"""Whether memory for keys and values suffices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from borrador.draft.protocol import CachingDrafter, Drafter
from borrador.models.memory import available_bytes
from borrador.models.prefix import SequencePool
from borrador.models.target import Model

_SHARE = 0.5  # of the memory that is free, for keys and values of a server
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


@contextmanager
def limited_caches(
    model: Model, drafters: Iterable[Drafter], cache_bytes: int | None, context_length: int
) -> Iterator[None]:
    """Let keys and values take no more than so many bytes, and those of draft models as many more as the same tokens
    need there, at least those of the longest context; until the end of the block.

    Args:
        model: the target.
        drafters: of which some may have keys and values of their own.
        cache_bytes: of the target; None shares a part of what is free among all of them.
        context_length: the most tokens of a request.
    """
    caching = [drafter for drafter in drafters if isinstance(drafter, CachingDrafter)]
    own = model.cache_bytes(context_length)
    needs = [drafter.cache_bytes(context_length) for drafter in caching]
    limit = cache_bytes or _share_of_free(own, sum(needs))
    holders: list[tuple[Model | CachingDrafter, int]] = [(model, own), *zip(caching, needs, strict=True)]
    for holder, need in holders:
        holder.limit_cache(None if limit is None else limit if holder is model else max(limit * need // own, need))
    try:
        yield
    finally:
        for holder, _ in holders:
            holder.limit_cache(None)


def _share_of_free(own: int, others: int) -> int | None:
    """Bytes for a target that needs so many for an answer, and its draft models so many; enough for one answer."""
    free = available_bytes()
    return None if free is None else max(int(_SHARE * free) * own // (own + others), own)
