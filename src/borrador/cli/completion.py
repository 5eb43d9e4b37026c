"""What a shell may offer for an unfinished word: models, drafters, histories and words of options.

Where nothing fits, shells offer files.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from borrador.draft.history import list_histories
from borrador.draft.plugin import find_plugins
from borrador.draft.registry import AUTO, BUILT_IN
from borrador.errors import BorradorError
from borrador.models.catalogue import CATALOGUE, models_folder

Offers: TypeAlias = list[tuple[str, str]]  # words, and what they are


def complete_model(incomplete: str) -> Offers:
    """Names of the catalogue, and other files of the models folder."""
    return _fitting(incomplete, [*_catalogue_models(), *_other_models()])


def complete_catalogue(incomplete: str) -> Offers:
    """Names that can be fetched."""
    return _fitting(incomplete, _catalogue_models())


def complete_drafter(incomplete: str) -> Offers:
    """The last of drafters between commas; those that stand before it are not offered again."""
    before, comma, last = incomplete.rpartition(",")
    given = before.split(",") if comma else []
    offers = (offer for offer in _drafters() if offer[0] not in given and not (given and offer[0] == "none"))
    return [(f"{before}{comma}{word}", what) for word, what in _fitting(last, offers)]


def complete_history(incomplete: str) -> Offers:
    """Names of histories on this disk."""
    names: list[str] = []
    with contextlib.suppress(BorradorError, OSError):
        names = sorted({entry.namespace for entry in list_histories()})
    return _fitting(incomplete, [(name, "a history on this disk") for name in names])


def complete_words(words: Sequence[str]) -> Callable[[str], Offers]:
    """Some fixed words."""

    def complete(incomplete: str) -> Offers:
        return _fitting(incomplete, [(word, "") for word in words])

    return complete


def _fitting(incomplete: str, offers: Iterable[tuple[str, str]]) -> Offers:
    return [(word, what) for word, what in offers if word.startswith(incomplete)]


def _drafters() -> Offers:
    return [
        ("auto", f"{' and '.join(AUTO)}, the default"),
        ("none", "plain decoding"),
        *((name, "needs no second model") for name in BUILT_IN),
        *((name, "a drafter from another package") for name in find_plugins()),
        *_catalogue_models(),
    ]


def _catalogue_models() -> Offers:
    return [(entry.name, f"{entry.size_bytes / 1e6:.0f} MB{_state(entry.name)}") for entry in CATALOGUE.values()]


def _state(name: str) -> str:
    with contextlib.suppress(BorradorError, OSError):
        return ", on this disk" if CATALOGUE[name].path.is_file() else ", is fetched on first use"
    return ""


def _other_models() -> Offers:
    known = {entry.file_name for entry in CATALOGUE.values()}
    with contextlib.suppress(BorradorError, OSError):
        return [
            (str(path), "on this disk") for path in sorted(models_folder().glob("*.gguf")) if path.name not in known
        ]
    return []
