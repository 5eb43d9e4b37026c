"""The API keys that a server takes, from options and a file."""

from __future__ import annotations

from pathlib import Path

from borrador.errors import UsageError

_KEY_FILE_BYTES = 1 << 16


def read_keys(given: list[str] | None, file: Path | None) -> tuple[str, ...]:
    """The keys of options and file.

    Raises:
        UsageError: the file cannot be read, or holds none.
    """
    keys = list(given or ())
    if file is not None:
        in_file = [line.strip() for line in _read(file).splitlines()]
        in_file = [line for line in in_file if line and not line.startswith("#")]
        if not in_file:
            raise UsageError(
                f"an API key file must hold at least one key, {file!s:.200} holds none", "Write one in it."
            )
        keys += in_file
    return tuple(keys)


def _read(file: Path) -> str:
    try:
        with file.open("rb") as stream:
            return stream.read(_KEY_FILE_BYTES).decode()
    except (OSError, ValueError):
        raise UsageError(
            f"the API key file {file!s:.200} must be readable text, it is not", "Check its path and permissions."
        ) from None
