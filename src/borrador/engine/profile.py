"""What was measured and learnt of a model on this machine, kept on disk for the next start."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import platform
import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from borrador.errors import UsageError
from borrador.folders import user_folder

_VERSION = 1
_LARGEST_BYTES = 1 << 20
_HASHED_BYTES = 1 << 20
_log = logging.getLogger("borrador")


def profile_folder() -> Path:
    """`$BORRADOR_PROFILES`, or `~/.cache/borrador-profiles`; it may not exist yet.

    Raises:
        UsageError: the home folder is not known.
    """
    return user_folder("BORRADOR_PROFILES", "~/.cache/borrador-profiles")


class Profile:
    """A file of JSON, one for each model, processor, instruction set and number of threads.

    It is read with suspicion and replaced as a whole: another process sees the old file or the new one, and of two that
    write the later one wins. A file that is damaged or of another version counts as none. Where the disk cannot be used
    nothing is kept, and a message says so (logger `borrador`).

    Args:
        path: the file; it and its folder need not exist.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def of(cls, model: Path, *, isa: str, threads: int) -> Profile | None:
        """The profile of a model file on this machine; None, with a message, where no folder for it is known."""
        try:
            folder = profile_folder()
        except UsageError as error:
            _log.warning("nothing is kept of what is learnt: %s", error)
            return None
        key = json.dumps([_VERSION, _fingerprint(model), processor_name(), isa, threads])
        return cls(folder / f"{model.stem[:60]}-{hashlib.sha256(key.encode()).hexdigest()[:16]}.json")

    def read(self) -> Mapping[str, Any]:
        """What was written last; empty where nothing was."""
        try:
            with self.path.open("rb") as file:
                content = file.read(_LARGEST_BYTES + 1)
            stored = json.loads(content) if len(content) <= _LARGEST_BYTES else None
        except (OSError, ValueError, RecursionError):
            return {}
        return stored if isinstance(stored, dict) and stored.get("version") == _VERSION else {}

    def write(self, values: Mapping[str, Any]) -> None:
        """Replace these values; others stay as they are."""
        content = json.dumps({**self.read(), **values, "version": _VERSION}, indent=1)
        partial: Path | None = None
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(
                "w", encoding="utf-8", dir=self.path.parent, prefix=".partial-", delete=False
            ) as file:
                partial = Path(file.name)
                file.write(content)
            partial.replace(self.path)
        except OSError as error:
            _log.warning("the profile %s cannot be written: %s", self.path, error.strerror)
            if partial is not None:
                with contextlib.suppress(OSError):
                    partial.unlink()


class HeldProfile(Profile):
    """A profile that writes nothing before it is told to.

    Args:
        origin: whose values it begins with.
        without: values that are not taken over.
    """

    def __init__(self, origin: Profile, without: Collection[str] = ()) -> None:
        super().__init__(origin.path)
        self._origin = origin
        self._values = {name: value for name, value in origin.read().items() if name not in without}

    def read(self) -> Mapping[str, Any]:
        return self._values

    def write(self, values: Mapping[str, Any]) -> None:
        self._values = {**self._values, **values}

    def keep(self) -> bool:
        """Write everything to the origin; whether that could be done."""
        self._origin.write(self._values)
        kept = json.loads(json.dumps(self._values))
        return {**self._origin.read(), **kept} == self._origin.read()


def _fingerprint(model: Path) -> str:
    """Of the file's beginning, which holds its metadata, and its size."""
    with model.open("rb") as file:
        digest = hashlib.sha256(file.read(_HASHED_BYTES))
        size = file.seek(0, os.SEEK_END)
    digest.update(str(size).encode())
    return digest.hexdigest()


def processor_name() -> str:
    """The processor's name, as far as the system tells it."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
