"""What masks that force nothing have in common."""

from __future__ import annotations

from borrador.sampling.shaping import History


class NothingForced:
    """Masks that leave a choice everywhere."""

    def forced(self, history: History, limit: int, /) -> tuple[int, ...]:
        return ()

    def is_complete(self, history: History, /) -> bool:
        return False
