"""Opens GGUF files: a bounded reader over a read-only memory map.

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, versions 2 and 3, little-endian. Nothing in the file
is trusted: every count, length and offset is checked against the file's size before it is used.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType, TracebackType

from borrador.errors import MemoryLimitError, ModelError
from borrador.models.gguf.cursor import Cursor, MetadataValue
from borrador.models.gguf.magic import check_magic
from borrador.models.gguf.tensors import TensorInfo, read_tensors

MAX_ENTRIES = 65536  # metadata keys, and tensors; the largest real files have a few thousand
_DEFAULT_ALIGNMENT = 32  # the format asks for a multiple of 8; the engine reads float32 vectors in place
_MAX_ALIGNMENT = 1 << 20


class GgufFile:
    """An open GGUF file. Use it as a context manager, or call `close`.

    Attributes:
        path: the file.
        size_bytes: its size.
        version: 2 or 3.
        metadata: key -> bool, int, float, str or a list of these. Strings that are not UTF-8 hold U+FFFD.
        tensors: name -> TensorInfo, in the file's order; they lie within the file and do not overlap.
    """

    path: Path
    size_bytes: int
    version: int
    metadata: Mapping[str, MetadataValue]
    tensors: Mapping[str, TensorInfo]

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._map = _map_file(self.path)
        try:
            self._parse()
        except BaseException:
            self._map.close()
            raise
        self._view = memoryview(self._map)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> GgufFile:
        """Map a file and read its header.

        Raises:
            ModelError: it is missing, is not a GGUF file of version 2 or 3, breaks the format anywhere, or holds
                a tensor in a format that is not supported.
            MemoryLimitError: the process may not map a file of its size.
        """
        return cls(path)

    def __enter__(self) -> GgufFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give the file back. Views from `tensor_bytes` that are still alive stay valid and keep the map open."""
        self._view.release()
        with contextlib.suppress(BufferError):  # a view is in use; the map closes with the last of them
            self._map.close()

    @property
    def architecture(self) -> str:
        """The model family, such as `llama`."""
        return self.text("general.architecture")

    def tensor_bytes(self, name: str) -> memoryview:
        """A tensor's data, as a read-only slice of the map.

        Raises:
            ModelError: the file has no tensor of that name.
        """
        tensor = self._tensor(name)
        return self._view[tensor.offset : tensor.offset + tensor.size_bytes]

    def release(self, name: str) -> None:
        """Let go of the pages read from a tensor, so that they do not count as memory in use; data stays readable."""
        tensor = self._tensor(name)
        if hasattr(self._map, "madvise") and hasattr(mmap, "MADV_DONTNEED"):
            start = tensor.offset - tensor.offset % mmap.PAGESIZE
            self._map.madvise(mmap.MADV_DONTNEED, start, tensor.offset + tensor.size_bytes - start)

    def integer(self, key: str, default: int | None = None, *, low: int = 0, high: int = 2**31 - 1) -> int:
        """The whole number under `key`, in [low, high].

        Raises:
            ModelError: it is missing without a default, of another type, or out of range.
        """
        value = self._value(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise self._bad_value(key, f"a whole number from {low} to {high}", value)
        return value

    def number(self, key: str, default: float | None = None, *, low: float = -1e38, high: float = 1e38) -> float:
        """The finite number under `key`, in [low, high].

        Raises:
            ModelError: it is missing without a default, of another type, not finite, or out of range.
        """
        value = self._value(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise self._bad_value(key, f"a number from {low:g} to {high:g}", value)
        return float(value)

    def text(self, key: str, default: str | None = None) -> str:
        """The string under `key`.

        Raises:
            ModelError: it is missing without a default, or of another type.
        """
        value = self._value(key, default)
        if not isinstance(value, str):
            raise self._bad_value(key, "text", value)
        return value

    def flag(self, key: str, default: bool | None = None) -> bool:
        """The bool under `key`.

        Raises:
            ModelError: it is missing without a default, or of another type.
        """
        value = self._value(key, default)
        if not isinstance(value, bool):
            raise self._bad_value(key, "true or false", value)
        return value

    def _value(self, key: str, default: MetadataValue | None) -> MetadataValue:
        value = self.metadata.get(key, default)
        if value is None:
            raise ModelError(f"{self.path.name} has no metadata key {key!r}", "Use another file of the model.")
        return value

    def _bad_value(self, key: str, rule: str, value: MetadataValue) -> ModelError:
        shown = f"a list of {len(value)}" if isinstance(value, list) else repr(value)[:80]
        return ModelError(
            f"{self.path.name}: metadata key {key!r} must be {rule}, got {shown}", "Use another file of the model."
        )

    def _tensor(self, name: str) -> TensorInfo:
        if name not in self.tensors:
            raise ModelError(f"{self.path.name} has no tensor {name!r}", "The file may be incomplete.")
        return self.tensors[name]

    def _parse(self) -> None:
        self.size_bytes = len(self._map)
        self.version = check_magic(self._map[:64], self.path.name)
        cursor = Cursor(self._map, self.path.name)
        cursor.skip(8, "the header")
        tensor_count = cursor.count("the tensor count", MAX_ENTRIES)
        self.metadata = MappingProxyType(_read_metadata(cursor, cursor.count("the metadata count", MAX_ENTRIES)))
        self._refuse_split()
        alignment = self._alignment(cursor)
        self.tensors = MappingProxyType(read_tensors(cursor, tensor_count, alignment))

    def _alignment(self, cursor: Cursor) -> int:
        alignment = self.integer("general.alignment", _DEFAULT_ALIGNMENT, low=8, high=_MAX_ALIGNMENT)
        if alignment & (alignment - 1):
            cursor.fail(f"'general.alignment' must be a power of two, got {alignment}")
        return alignment

    def _refuse_split(self) -> None:
        parts = self.integer("split.count", 1, high=65535)
        if parts > 1:
            raise ModelError(
                f"{self.path.name} is one of {parts} parts, and split models are not supported",
                "Join the parts with `llama-gguf-split --merge`, or download the model as one file.",
            )


def _map_file(path: Path) -> mmap.mmap:
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise ModelError(f"{path} is a directory, not a model file", "Give the path of a .gguf file.")
        if not stat.S_ISREG(status.st_mode):
            raise ModelError(f"{path} is not a regular file", "Give the path of a .gguf file.")
        if not status.st_size:
            raise ModelError(f"{path} is empty", "Download it again.")
        with path.open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except FileNotFoundError:
        raise ModelError(f"there is no model file {path}", "Check the path; `borrador list` shows models.") from None
    except OSError as error:
        if error.errno == errno.ENOMEM:
            message = f"{path.name} does not fit into the address space that this process may use"
            raise MemoryLimitError(message, "Use a smaller model, or raise the limit (ulimit -v).") from None
        raise _unreadable(path, error.strerror or str(error)) from None
    except ValueError as error:  # : the path holds a NUL, or the file became empty meanwhile
        raise _unreadable(path, str(error)) from None


def _unreadable(path: Path, reason: str) -> ModelError:
    return ModelError(f"{str(path)!r} cannot be read: {reason}", "Check the path and its permissions.")


def _read_metadata(cursor: Cursor, count: int) -> dict[str, MetadataValue]:
    metadata: dict[str, MetadataValue] = {}
    for _ in range(count):
        key = cursor.read_name("a metadata key")
        if key in metadata:
            cursor.fail(f"the metadata key {key!r} occurs twice")
        metadata[key] = cursor.value(key)
    return metadata
