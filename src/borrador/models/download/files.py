"""Files of the models folder: checksums, room on the disk, and writing without half files."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

from borrador.errors import ModelError
from borrador.models.catalogue import CatalogueEntry

Progress: TypeAlias = Callable[[int, int, str], None]  # bytes done, bytes in all, label

CHUNK_BYTES = 1 << 22
_PARTIAL_PREFIX = ".partial-"
_STALE_SECONDS = 24 * 3600
_verified: set[str] = set()  # fingerprints; a note in the folder outlives the process, if it can be written


def ignore_progress(done_bytes: int, total_bytes: int, label: str) -> None:
    """The progress callback of a caller that does not want one."""


def checking(name: str, progress: Progress) -> Callable[[int, int], None]:
    """Report the hashing of a model."""
    return lambda done, total: progress(done, total, f"checking {name}")


def sha256_of(path: Path, report: Callable[[int, int], None]) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    digest, done, total = hashlib.sha256(), 0, path.stat().st_size
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
            done += len(chunk)
            report(done, total)
    return digest.hexdigest()


def is_verified(entry: CatalogueEntry, report: Callable[[int, int], None]) -> bool:
    """Whether the entry's file has the right SHA-256.

    Hashing a large file takes seconds, so a right one leaves a note beside it, which holds until the file changes.
    """
    try:
        if entry.path.stat().st_size != entry.size_bytes:
            return False
        fingerprint = _fingerprint(entry)
        if fingerprint in _verified or _read_note(entry) == fingerprint:
            return True
        if sha256_of(entry.path, report) != entry.sha256:
            return False
    except OSError as error:
        raise ModelError(f"{entry.path} cannot be read: {error.strerror}", "Check its permissions.") from None
    note_verified(entry)
    return True


def note_verified(entry: CatalogueEntry) -> None:
    """Remember that the file as it is now was hashed and is right."""
    _verified.add(_fingerprint(entry))
    with contextlib.suppress(OSError):  # a read-only folder only means that the next process hashes it again
        _note_path(entry).write_text(_fingerprint(entry), encoding="ascii")


def wrong_checksum(entry: CatalogueEntry) -> ModelError:
    """The error for a file of the models folder that is not the catalogue's."""
    found, size = entry.path, entry.path.stat().st_size
    if not found.is_file():
        return ModelError(f"{found} must be a file, and is something else", "Move it away, and pull the model again.")
    what = (
        "another SHA-256 than the catalogue's" if size == entry.size_bytes else f"{size} bytes, not {entry.size_bytes}"
    )
    return ModelError(f"{found} is damaged: it has {what}", f"Run `borrador pull {entry.name}` to replace it.")


def require_space(folder: Path, needed_bytes: int, name: str) -> None:
    """Raise ModelError unless the folder's file system has this much room."""
    free_bytes = shutil.disk_usage(folder).free
    if free_bytes < needed_bytes:
        raise ModelError(
            f"fetching {name} needs {needed_bytes / 1e6:.0f} MB of free disk in {folder}, and"
            f" {free_bytes / 1e6:.0f} MB are free",
            "Free some space, or set BORRADOR_MODELS to a folder on a larger disk.",
        )


@contextlib.contextmanager
def partial_folder(folder: Path) -> Iterator[Path]:
    """A folder for unfinished files on the file system of `folder`; it is gone afterwards, whatever happens."""
    _remove_stale(folder)
    partial = Path(tempfile.mkdtemp(prefix=_PARTIAL_PREFIX, dir=folder))
    try:
        yield partial
    finally:
        _remove(partial)


def _remove(folder: Path) -> None:
    """Remove a folder, even where an impatient second Ctrl-C arrives meanwhile."""
    try:
        shutil.rmtree(folder, ignore_errors=True)
    except KeyboardInterrupt:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _remove_stale(folder: Path) -> None:
    """Remove what a killed process left; a younger folder may belong to a fetch that is still going on."""
    for path in folder.glob(f"{_PARTIAL_PREFIX}*"):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > _STALE_SECONDS:
                shutil.rmtree(path, ignore_errors=True)


def _note_path(entry: CatalogueEntry) -> Path:
    return entry.path.with_name(f".{entry.file_name}.verified")


def _fingerprint(entry: CatalogueEntry) -> str:
    status = entry.path.stat()
    return f"{entry.sha256} {status.st_size} {status.st_mtime_ns}\n"


def _read_note(entry: CatalogueEntry) -> str:
    try:
        return _note_path(entry).read_text(encoding="ascii")
    except (OSError, ValueError):
        return ""
