"""The file of a history: answers as token ids, read with suspicion and replaced as a whole.

A file is a line that names the format and its version, a line of JSON (namespace, vocabulary, the answers' lengths),
the token ids as 32-bit integers, lowest byte first, and the CRC-32 of all that.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from borrador.errors import BorradorError
from borrador.types import Int32Array

_FORMAT = b"BORRADOR-HISTORY "
_VERSION = b"1"
_LARGEST_BYTES = 64 << 20
_CHECK_BYTES = 4
_LOCK_NAME = ".lock"
_LOCK_WAIT_S = 0.5
_PARTIAL_PREFIX = ".partial-"


class Stored(NamedTuple):
    """What a file holds: answers, oldest first, of a namespace, in ids of a vocabulary."""

    namespace: str
    vocabulary: str
    answers: list[Int32Array]


class DamagedError(BorradorError):
    """A file is not what was written; it may be replaced."""


class ForeignError(BorradorError):
    """A file is of another program, version, namespace or vocabulary; it must be left alone."""


def encode(stored: Stored) -> bytes:
    """The bytes of a file."""
    lengths = [len(answer) for answer in stored.answers]
    head = json.dumps({"namespace": stored.namespace, "vocabulary": stored.vocabulary, "lengths": lengths})
    body = b"".join(answer.astype("<i4").tobytes() for answer in stored.answers)
    data = b"%s%s\n%s\n%s" % (_FORMAT, _VERSION, head.encode(), body)
    return data + zlib.crc32(data).to_bytes(_CHECK_BYTES, "little")


def decode(data: bytes) -> Stored:
    """What the bytes of a file hold.

    Raises:
        ForeignError: they are of another program or version.
        DamagedError: they are not as they were written.
    """
    if data[: len(_FORMAT)] != _FORMAT[: len(data)]:
        raise ForeignError("it is no history")
    line, _, rest = data[:-_CHECK_BYTES].partition(b"\n")
    if zlib.crc32(data[:-_CHECK_BYTES]) != int.from_bytes(data[-_CHECK_BYTES:], "little") or not rest:
        raise DamagedError("it is damaged")
    if line != _FORMAT + _VERSION:
        version = line.removeprefix(_FORMAT).decode(errors="replace")
        raise ForeignError(f"its format is version {version:.20}, not {_VERSION.decode()}")
    head, _, body = rest.partition(b"\n")
    try:
        return _parse(json.loads(head), body)
    except (ValueError, TypeError, KeyError, RecursionError):
        raise DamagedError("it is damaged") from None


def _parse(head: Any, body: bytes) -> Stored:
    namespace, vocabulary, lengths = head["namespace"], head["vocabulary"], head["lengths"]
    tokens = np.frombuffer(body, "<i4").astype(np.int32)
    counted = all(type(length) is int and length > 0 for length in lengths) and sum(lengths) == len(tokens)
    if not (isinstance(namespace, str) and isinstance(vocabulary, str) and counted and (tokens >= 0).all()):
        raise ValueError
    ends = np.cumsum(lengths, dtype=np.int64) if lengths else np.empty(0, np.int64)
    return Stored(namespace, vocabulary, np.split(tokens, ends[:-1]) if lengths else [])


def read(path: Path) -> Stored | None:
    """What a file holds; None where there is none.

    Raises:
        ForeignError, DamagedError: as for `decode`.
        OSError: the system does not give it.
    """
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST_BYTES + 1)
    except FileNotFoundError:
        return None
    if len(data) > _LARGEST_BYTES:
        raise ForeignError(f"it has more than {_LARGEST_BYTES} bytes")
    return decode(data)


def write(path: Path, stored: Stored) -> None:
    """Replace a file at once, for its owner's eyes only; the folder must be locked.

    Whoever is killed meanwhile leaves the old file, and the next writer removes what is left of the new one. After a
    power failure the file may turn out damaged.

    Raises:
        OSError: the system does not take it.
    """
    for stale in path.parent.glob(f"{_PARTIAL_PREFIX}*"):  # nobody else writes while the folder is locked
        stale.unlink(missing_ok=True)
    handle, partial = tempfile.mkstemp(prefix=_PARTIAL_PREFIX, dir=path.parent)  # of mode 0600
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(encode(stored))
        Path(partial).replace(path)
    except BaseException:
        Path(partial).unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other processes from writing in a folder, which is created where it is missing.

    Raises:
        OSError: the folder cannot be used, or another process holds it for longer than half a second.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(folder / _LOCK_NAME, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        deadline = time.monotonic() + _LOCK_WAIT_S
        while not _try_lock(handle):
            if time.monotonic() > deadline:
                raise TimeoutError(f"another process has held {folder} for {_LOCK_WAIT_S:g} s")
            time.sleep(0.01)
        yield
    finally:
        os.close(handle)  # which unlocks it


def _try_lock(handle: int) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def newest(answers: Sequence[Int32Array], limit: int) -> list[Int32Array]:
    """The newest answers that have at most `limit` tokens together; of a longer one its end."""
    kept: list[Int32Array] = []
    for answer in reversed(answers):
        if len(answer) > limit:
            if not kept and limit > 0:
                kept.append(answer[-limit:])
            break
        limit -= len(answer)
        kept.append(answer)
    return kept[::-1]
