"""Reads GGUF's primitive values from a buffer; every length is checked against the buffer before it is used."""

from __future__ import annotations

import mmap
import struct
from typing import NoReturn, TypeAlias

from borrador.errors import ModelError

MetadataValue: TypeAlias = "bool | int | float | str | list[MetadataValue]"

MAX_NAME_BYTES = 256  # the format allows 65535; no real file comes near, and names appear in error messages
MAX_STRING_BYTES = 16 << 20  # some files carry a whole tokenizer.json as one string
MAX_ARRAY_ITEMS = 1 << 22  # of all arrays together; bounds what a small file can make us allocate
MAX_ARRAY_DEPTH = 4

_BOOL, _STRING, _ARRAY = 7, 8, 9
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 10: "Q", 11: "q", 12: "d"}
_U32 = struct.Struct("<I")
_U64 = struct.Struct("<Q")


class Cursor:
    """A position in a GGUF file that only moves forward and never leaves it.

    Every method raises ModelError, naming the file, the rule and the value, where the file breaks the format.
    """

    def __init__(self, data: mmap.mmap | bytes, name: str) -> None:
        self._data = data
        self.size = len(data)
        self.name = name
        self._array_items_left = MAX_ARRAY_ITEMS
        self.position = 0

    def fail(self, problem: str) -> NoReturn:
        raise ModelError(f"{self.name} is not a valid GGUF file: {problem}", "Download it again; it may be damaged.")

    def skip(self, count: int, what: str) -> int:
        """Move past `count` bytes and return where they start."""
        start = self.position
        if count > self.size - start:
            self.fail(f"{what} needs {count} bytes at offset {start}, and the file has {self.size - start} left")
        self.position = start + count
        return start

    def u32(self, what: str) -> int:
        value: int = _U32.unpack_from(self._data, self.skip(4, what))[0]
        return value

    def u64(self, what: str) -> int:
        value: int = _U64.unpack_from(self._data, self.skip(8, what))[0]
        return value

    def count(self, what: str, limit: int) -> int:
        """A 64-bit count that may be at most `limit`."""
        value = self.u64(what)
        if value > limit:
            self.fail(f"{what} must be at most {limit}, got {value}")
        return value

    def read_name(self, what: str) -> str:
        """A key or tensor name: printable UTF-8, not empty."""
        length = self.count(f"the length of {what}", MAX_NAME_BYTES)
        start = self.skip(length, what)
        try:
            text = str(self._data[start : self.position], "utf-8")
        except UnicodeDecodeError:
            self.fail(f"{what} at offset {start} is not valid UTF-8")
        if not text:
            self.fail(f"{what} at offset {start} is empty")
        if not text.isprintable():
            self.fail(f"{what} at offset {start} holds characters that cannot be printed")
        return text

    def value(self, key: str) -> MetadataValue:
        """A typed value: its type id, then its content."""
        return self._content(self.u32(f"the type of {key!r}"), key, depth=0)

    def _content(self, type_id: int, key: str, depth: int) -> MetadataValue:
        if type_id == _ARRAY:
            return self._array(key, depth + 1)
        return self._scalars(type_id, 1, key)[0]

    def _array(self, key: str, depth: int) -> list[MetadataValue]:
        if depth > MAX_ARRAY_DEPTH:
            self.fail(f"{key!r} nests arrays more than {MAX_ARRAY_DEPTH} deep")
        type_id = self.u32(f"the item type of {key!r}")
        count = self.count(f"the array length of {key!r}", self._array_items_left)
        self._array_items_left -= count
        if type_id == _ARRAY:
            return [self._array(key, depth + 1) for _ in range(count)]
        return self._scalars(type_id, count, key)

    def _scalars(self, type_id: int, count: int, key: str) -> list[MetadataValue]:
        if type_id == _STRING:
            return self._strings(count, key)
        if type_id == _BOOL:
            return self._flags(count, key)
        if type_id not in _NUMBERS:
            self.fail(f"{key!r} has value type {type_id}, and types go from 0 to 12")
        layout = struct.Struct(f"<{count}{_NUMBERS[type_id]}")
        return list(layout.unpack_from(self._data, self.skip(layout.size, repr(key))))

    def _flags(self, count: int, key: str) -> list[MetadataValue]:
        start = self.skip(count, repr(key))
        raw = self._data[start : self.position]
        if raw.translate(None, b"\x00\x01"):
            self.fail(f"{key!r} holds a bool that is neither 0 nor 1")
        return [byte == 1 for byte in raw]

    def _strings(self, count: int, key: str) -> list[MetadataValue]:
        # A vocabulary has some 300,000 strings: one tight loop, no call per string but the decoding itself.
        # Invalid UTF-8 becomes U+FFFD: such tokens exist in real files, and no tokenizer takes lone surrogates.
        data, size, position, unpack = self._data, self.size, self.position, _U64.unpack_from
        strings: list[MetadataValue] = []
        for _ in range(count):
            start = position + 8
            length = unpack(data, position)[0] if start <= size else size
            position = start + length
            if position > size or length > MAX_STRING_BYTES:
                self._fail_string(start, length, key)
            strings.append(str(data[start:position], "utf-8", "replace"))
        self.position = position
        return strings

    def _fail_string(self, start: int, length: int, key: str) -> NoReturn:
        if start > self.size:
            self.fail(f"the file ends inside {key!r}")
        limit = min(MAX_STRING_BYTES, self.size - start)
        self.fail(f"a string of {key!r} at offset {start} may have at most {limit} bytes, got {length}")
