"""Whether more requests are to be expected where none waits."""

from __future__ import annotations

from collections.abc import Iterable

from borrador.engine.member import Member


class Arrivals:
    """Clients that ask again when they have their answer keep no line, and yet there is always another request to come:
    where one came while others were written, another is expected for as long as one of those is."""

    def __init__(self) -> None:
        self._hosts: list[Member] = []

    def note(self, live: Iterable[Member]) -> None:
        """A request has come beside these."""
        self._hosts = [member for member in live if not member.is_reading]

    @property
    def go_on(self) -> bool:
        """Another is expected."""
        self._hosts = [member for member in self._hosts if not member.is_gone]
        return bool(self._hosts)
