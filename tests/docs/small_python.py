"""`python` of shell commands in the documentation, with its measurements made short."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from benchmarks.papers.__main__ import read_options

ACCEPTANCE_LIMITS = ("--per-task", "1", "--max-tokens", "8")


def main(words: Sequence[str]) -> None:
    """Run a module of `benchmarks`.

    Of `benchmarks.papers` the options alone are read: it takes a quarter of an hour, needs models that can be trimmed,
    and has tests of its own.
    """
    sys.argv = list(words[1:])
    if words[:2] == ["-m", "benchmarks.papers"]:
        read_options()
        return
    limits = ACCEPTANCE_LIMITS if words[:2] == ["-m", "benchmarks.acceptance"] else ()
    os.execv(sys.executable, [sys.executable, *words, *limits])


if __name__ == "__main__":
    main(sys.argv[1:])
