"""What was written in earlier requests, kept on this disk where the user asks for it, to draft from.

Nothing is kept unless a history is named. Then the tokens of every answer written with drafting are kept, as token ids,
which anyone with the model's vocabulary can turn back into text. Prompts are not kept. Namespaces never share anything.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from borrador import _native
from borrador.draft.history_file import DamagedError, ForeignError, Stored, locked, newest, read, write
from borrador.errors import BorradorError, UsageError
from borrador.folders import user_folder
from borrador.types import Int32Array
from borrador.values import namespace as checked_namespace

MOST_TOKENS = 1 << 17  # of a history: half a megabyte
_LEAST_ANSWER = 2  # of one token nothing can be learnt
_SUFFIX = ".history"
_SEPARATOR = np.array([-1], np.int32)
_log = logging.getLogger("borrador")


def history_folder() -> Path:
    """`$BORRADOR_HISTORY`, or `~/.cache/borrador-history`; it may not exist yet.

    Raises:
        UsageError: the home folder is not known.
    """
    return user_folder("BORRADOR_HISTORY", "~/.cache/borrador-history")


class History:
    """The answers of one namespace and one vocabulary. Threads and processes may use it at the same time.

    Args:
        namespace: its name.
        vocabulary: fingerprint of the vocabulary that the token ids belong to.
        folder: where its file lies; None is `history_folder()`.
        most_tokens: that are kept; beyond them the oldest answers are dropped.

    A file that is damaged, or not of this namespace, vocabulary and format, is ignored with a message (logger
    `borrador`); only a damaged one is replaced. A disk that cannot be used gives a message too, and answers go on.

    Raises:
        UsageError: the namespace is not a valid name.
    """

    def __init__(
        self, namespace: str, vocabulary: str, *, folder: Path | None = None, most_tokens: int = MOST_TOKENS
    ) -> None:
        self._namespace = checked_namespace("history", namespace)
        self._vocabulary = vocabulary
        self._most_tokens = most_tokens
        self.path = (folder or history_folder()) / f"{namespace}@{vocabulary[:16]}{_SUFFIX}"
        self._lock = threading.Lock()
        self._unsaved: list[Int32Array] = []
        self._answers: list[Int32Array] = []
        self._usable = True
        self._frozen = False
        self._complaint = ""
        self._answers = self._read_file()
        self._automaton = self._build()

    @property
    def automaton(self) -> _native.SuffixAutomaton:
        """Over all answers, each ended by -1. It only grows; where there are too many answers, a new one is begun."""
        return self._automaton

    def remember(self, answer: Sequence[int]) -> None:
        """Add an answer, in memory and on disk."""
        if len(answer) < _LEAST_ANSWER or self._frozen:
            return
        tokens = np.array(answer[-self._most_tokens :], np.int32)
        with self._lock:
            self._answers.append(tokens)
            self._unsaved = newest([*self._unsaved, tokens], self._most_tokens)
            self._save()
            if self._automaton.length + len(tokens) + 1 > self._automaton.capacity:
                self._automaton = self._build()
            else:
                self._automaton.add(np.concatenate([tokens, _SEPARATOR]))

    def freeze(self) -> None:
        """Remember nothing more; what is there goes on being proposed from."""
        self._frozen = True

    def close(self) -> None:
        """Write what could not be written before."""
        with self._lock:
            if self._unsaved:
                self._save()

    def _build(self) -> _native.SuffixAutomaton:
        """An automaton of the newest answers, with room for more."""
        self._answers = newest(self._answers, self._most_tokens)
        automaton = _native.SuffixAutomaton(2 * self._most_tokens + 2)  # the ends of answers take up to half as many
        for answer in self._answers:
            automaton.add(np.concatenate([answer, _SEPARATOR]))
        return automaton

    def _save(self) -> None:
        """Add unsaved answers to those that the file has by now."""
        if not self._usable:
            return
        try:
            with locked(self.path.parent):
                answers = newest([*self._read_file(), *self._unsaved], self._most_tokens)
                if self._usable:
                    write(self.path, Stored(self._namespace, self._vocabulary, answers))
                    self._unsaved.clear()
                    self._complaint = ""
        except OSError as error:
            self._complain(f"the history {self.path} is not kept: {error.strerror or error}")

    def _complain(self, sentence: str) -> None:
        """Say it, but not again after every answer."""
        if sentence != self._complaint:
            _log.warning("%s", sentence)
        self._complaint = sentence

    def _read_file(self) -> list[Int32Array]:
        try:
            stored = read(self.path)
            if stored is None:
                return []
            if (stored.namespace, stored.vocabulary) != (self._namespace, self._vocabulary):
                raise ForeignError("it is of another namespace or vocabulary")
            return stored.answers
        except DamagedError as error:
            self._complain(f"the history {self.path} is ignored, and will be replaced: {error}")
        except ForeignError as error:
            self._usable = False
            self._complain(
                f"the history {self.path} is ignored, and nothing is added to it: {error}; "
                f"`borrador history clear {self._namespace}` deletes it"
            )
        except OSError as error:
            self._usable = False
            self._complain(
                f"the history {self.path} cannot be read, and nothing is added to it: {error.strerror or error}"
            )
        return []


class HistoryFile(NamedTuple):
    """A file of the history folder; answers and tokens are None where it cannot be read."""

    namespace: str
    path: Path
    size_bytes: int
    answers: int | None
    tokens: int | None


def list_histories(folder: Path | None = None) -> list[HistoryFile]:
    """The histories on this disk, by name."""
    return sorted(_describe_files(folder or history_folder()))


def clear_history(namespace: str | None = None, folder: Path | None = None) -> int:
    """Delete a namespace's files, or all; how many there were.

    Raises:
        UsageError: the namespace is not a valid name, or has no files.
        BorradorError: the system does not delete them.
    """
    folder = folder or history_folder()
    if namespace is not None:
        checked_namespace("NAME", namespace)
    found = [entry for entry in list_histories(folder) if namespace in (None, entry.namespace)]
    if not found:
        if namespace is not None:
            raise UsageError(f"there is no history {namespace}", "See: borrador history list.")
        return 0
    try:
        with locked(folder):
            for entry in found:
                entry.path.unlink(missing_ok=True)
    except OSError as error:
        raise BorradorError(
            f"the histories in {folder} cannot be deleted: {error.strerror or error}", "Check its permissions."
        ) from None
    return len(found)


def _describe_files(folder: Path) -> Iterator[HistoryFile]:
    for path in folder.glob(f"*@*{_SUFFIX}"):
        try:
            namespace, size_bytes = path.name.partition("@")[0], path.lstat().st_size
        except FileNotFoundError:  # deleted meanwhile
            continue
        try:
            stored = read(path)
        except (BorradorError, OSError):
            yield HistoryFile(namespace, path, size_bytes, None, None)
            continue
        if stored is not None:
            yield HistoryFile(namespace, path, size_bytes, len(stored.answers), sum(map(len, stored.answers)))
