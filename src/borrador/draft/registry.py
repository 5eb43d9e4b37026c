"""Drafters by name. A new drafter is added here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack

from borrador.draft.history import History
from borrador.draft.lookup import LookupDrafter
from borrador.draft.protocol import Drafter
from borrador.draft.recycle import RecycleDrafter
from borrador.draft.suffix import SuffixDrafter
from borrador.errors import UsageError

OpenDrafter = Callable[[str], Drafter]

# Drafters that need no second model.
BUILT_IN: Mapping[str, Callable[[History | None], Drafter]] = {
    "lookup": lambda _history: LookupDrafter(),
    "recycle": lambda _history: RecycleDrafter(),
    "suffix": SuffixDrafter,
}
AUTO = ("suffix", "recycle")  # those that `auto` takes
NAMES = ("none", "auto", *BUILT_IN)
REMEMBERING = ("suffix",)  # those that use a history


def expand_specs(specs: Iterable[str]) -> tuple[str, ...]:
    """Resolve `auto` and `none`, and drop repetitions; what is left are built-in drafters, plug-ins and models.

    Args:
        specs: `none`, `auto`, a built-in drafter, a plug-in, or a model's name or path.

    Raises:
        UsageError: `none` stands beside other drafters.
    """
    names = list(dict.fromkeys(specs))
    if "none" in names:
        if len(names) > 1:
            others = ", ".join(name for name in names if name != "none")
            raise UsageError(f"draft none excludes other drafters, and {others} is given too", "Leave one of them out.")
        return ()
    expanded = [part for name in names for part in (AUTO if name == "auto" else (name,))]
    built_in = [name for name in expanded if name in BUILT_IN]
    return tuple(dict.fromkeys([*built_in, *expanded]))


def require_use_of_history(specs: Iterable[str]) -> None:
    """Raise UsageError unless one of these drafters uses a history. `specs` as for `expand_specs`."""
    specs = tuple(specs)
    if not any(name in REMEMBERING for name in expand_specs(specs)):
        raise UsageError(
            f"history needs the drafter {' or '.join(REMEMBERING)}, and draft is {','.join(specs)}",
            f"Add {REMEMBERING[0]} to it, or leave the history out.",
        )


def open_drafters(specs: Iterable[str], open_other: OpenDrafter, history: History | None = None) -> Sequence[Drafter]:
    """Open the drafters that `specs` name, built-in ones first; none of them stays open where one fails.

    Args:
        specs: as for `expand_specs`.
        open_other: opens a plug-in by its name, or a draft model by name or path.
        history: for those that use one.

    Raises:
        UsageError: `none` stands beside other drafters, or a plug-in cannot be made.
        ModelError: a draft model is missing or damaged.
    """
    with ExitStack() as opened:
        drafters: list[Drafter] = []
        for name in expand_specs(specs):
            drafters.append(BUILT_IN[name](history) if name in BUILT_IN else open_other(name))
            opened.callback(drafters[-1].close)
        opened.pop_all()
        return drafters
