"""Where files of our own lie on a user's disk."""

from __future__ import annotations

import os
from pathlib import Path

from borrador.errors import BorradorError, UsageError


def user_folder(variable: str, default: str, error: type[BorradorError] = UsageError) -> Path:
    """The folder that an environment variable names, or else the default; it may not exist.

    Args:
        variable: its name.
        default: a path, which may begin with `~`.
        error: raised where the home folder is not known.
    """
    chosen = os.environ.get(variable) or default
    try:
        return Path(chosen).expanduser()
    except RuntimeError:
        raise error(f"the home folder of {chosen} is not known", f"Set {variable} to a folder.") from None
