"""Files that a measurement of minutes ends in: checked before it, and written whole or not at all."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from unicodedata import category

from borrador.errors import BorradorError, UsageError


def require_writable(path: Path, option: str, suffix: str) -> None:
    """Check all that can be checked of a file before there is anything to write.

    Args:
        path: the file.
        option: of the command line, that names it.
        suffix: that its name must have, with the dot.

    Raises:
        UsageError: the name or the place is not right.
        BorradorError: the system does not allow it.
    """
    if path.suffix.lower() != suffix:
        raise UsageError(f"{option} writes a file that ends in {suffix}, got {path.name!r:.80}", "Give another name.")
    try:
        if not path.parent.is_dir():
            raise UsageError(
                f"{option} needs an existing folder, and {str(path.parent)!r:.80} is not one", "Make the folder first."
            )
        if path.exists() and not path.is_file():
            raise UsageError(f"{option} writes a file, and {str(path)!r:.80} is something else", "Give another name.")
        partial = _partial(path)
        partial.touch(exist_ok=False)
        partial.unlink()
    except (OSError, ValueError) as error:
        raise _refused(path, error) from error


def write_whole(path: Path, content: str) -> None:
    """Write a text file under another name in its folder, then rename it.

    Raises:
        BorradorError: the system refuses; nothing is left behind.
    """
    partial = _partial(path)
    try:
        with partial.open("x", encoding="utf-8") as file:
            file.write(content)
        partial.replace(path.resolve())
    except OSError as error:
        raise _refused(path, error) from error
    finally:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)


def as_name(text: str) -> str:
    """A name that any file and terminal can show: controls and halves of characters, as names of files that are not
    UTF-8 have, become question marks."""
    return "".join(letter if letter.isprintable() or category(letter) == "Zs" else "?" for letter in text)


def _partial(path: Path) -> Path:
    return path.resolve().parent / f".partial-{os.getpid()}-{path.name[-100:]}"


def _refused(path: Path, error: OSError | ValueError) -> BorradorError:
    reason = error.strerror if isinstance(error, OSError) else "it is not a file name"
    return BorradorError(f"{str(path)!r:.80} cannot be written: {reason}", "Choose another file.")
