"""Small files and commands in which systems describe themselves."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_ANSWER_S = 2.0


class System:
    """Reads what Linux tells in files, and macOS by `sysctl`; elsewhere everything is unknown.

    Args:
        root: where `/proc` and `/sys` are looked for.
        platform: as `sys.platform`.
    """

    def __init__(self, root: Path = Path("/"), platform: str = sys.platform) -> None:
        self.root = root
        self.platform = platform

    def text(self, path: str) -> str | None:
        """A file's content without blanks around it; None where it cannot be read."""
        try:
            return (self.root / path).read_text("utf-8", "replace").strip()
        except OSError:
            return None

    def number(self, path: str) -> int | None:
        """The whole number that is a file's content; None for anything else, such as `max`."""
        text = self.text(path)
        return int(text) if text and text.lstrip("-").isdigit() else None

    def fields(self, path: str) -> dict[str, str]:
        """The lines `name: value` of a file; of lines with one name the first."""
        found: dict[str, str] = {}
        for line in (self.text(path) or "").splitlines():
            name, colon, value = line.partition(":")
            if colon:
                found.setdefault(name.strip(), value.strip())
        return found

    def kilobytes(self, path: str, name: str) -> int | None:
        """A field such as `MemTotal: 24683520 kB`, in bytes."""
        amount = self.fields(path).get(name, "").partition(" ")[0]
        return int(amount) * 1024 if amount.isdigit() else None

    def count(self, pattern: str) -> int:
        """Files that match."""
        return sum(1 for _ in self.root.glob(pattern))

    def sysctl(self, name: str) -> str | None:
        """A value of macOS; None elsewhere."""
        if self.platform != "darwin":
            return None
        try:
            answer = subprocess.run(
                ["/usr/sbin/sysctl", "-n", name], capture_output=True, text=True, timeout=_ANSWER_S, check=True
            )
        except (OSError, subprocess.SubprocessError):
            return None
        return answer.stdout.strip()
