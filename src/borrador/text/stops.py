"""Stop strings in streamed text."""

from __future__ import annotations

from collections.abc import Sequence


class StopDetector:
    """Cuts a stream of text at the first stop string, wherever the stream's pieces begin and end.

    The stop string that is complete first wins; of several that end at the same character, the longest. The result
    does not depend on how the text is cut into pieces.

    Args:
        stop_strings: non-empty texts; they and what follows are not part of the result.
    """

    def __init__(self, stop_strings: Sequence[str]) -> None:
        self._stop_strings = tuple(stop_strings)
        self._longest = max(map(len, self._stop_strings), default=0)
        self._held = ""
        self.stopped = False

    def push(self, text: str) -> tuple[str, bool]:
        """Add text.

        Returns:
            The text that is now certain to belong to the result, and whether a stop string has ended it.
        """
        if self.stopped:
            return "", True
        text = self._held + text
        start = self._find(text)
        if start is not None:
            self._held = ""
            self.stopped = True
            return text[:start], True
        certain = len(text) - self._possible_start(text)
        self._held = text[certain:]
        return text[:certain], False

    def flush(self) -> str:
        """Text held back at the end of the stream: it began like a stop string and did not become one."""
        text, self._held = self._held, ""
        return text

    def _find(self, text: str) -> int | None:
        matches = [(start + len(stop), start) for stop in self._stop_strings if (start := text.find(stop)) >= 0]
        return min(matches)[1] if matches else None

    def _possible_start(self, text: str) -> int:
        """How many characters at the end may be the start of a stop string."""
        for length in range(min(self._longest - 1, len(text)), 0, -1):
            if any(stop.startswith(text[-length:]) for stop in self._stop_strings):
                return length
        return 0
