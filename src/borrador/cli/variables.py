"""Environment variables that the program reads, and those that only look like it."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterable, Mapping
from types import MappingProxyType

_PREFIX = "BORRADOR_"
GENERAL: Mapping[str, str] = MappingProxyType(
    {
        "BORRADOR_MODELS": "Folder of models. Default: ~/.cache/borrador-models",
        "BORRADOR_PROFILES": "Folder of what was measured and learnt. Default: ~/.cache/borrador-profiles",
        "BORRADOR_HISTORY": "Folder of histories. Default: ~/.cache/borrador-history",
        "BORRADOR_ISA": "Forces an instruction set: portable, avx2, avxvnni, avx512vnni or neon.",
        "BORRADOR_DEBUG": "1 adds the traceback to an error.",
    }
)


def describe_unread(given: Iterable[str], options: Callable[[], Collection[str]]) -> str:
    """A sentence about variables that are named like the program's and read by no command; empty without any.

    Args:
        given: names of variables that are set.
        options: names the variables that stand in for options; called only where it matters.
    """
    suspects = [name for name in given if name.startswith(_PREFIX) and name.isprintable() and name not in GENERAL]
    known = {*GENERAL, *options()} if suspects else set()
    unread = [_with_suggestion(name, known) for name in sorted(suspects) if name not in known]
    return f"no command reads {', '.join(unread)}" if unread else ""


def _with_suggestion(name: str, known: Collection[str]) -> str:
    ends = [each.removeprefix(_PREFIX) for each in known]
    close = difflib.get_close_matches(name.removeprefix(_PREFIX), ends, n=1)
    return f"{name} (did you mean {_PREFIX}{close[0]}?)" if close else name
