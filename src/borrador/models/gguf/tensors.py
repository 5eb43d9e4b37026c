"""The tensor table of a GGUF file."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass

from borrador.errors import ModelError
from borrador.models.gguf.cursor import Cursor
from borrador.models.gguf.formats import TensorFormat, format_name, supported_formats

MAX_DIMENSIONS = 8


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """Where a tensor lies in the file and how to read it.

    Attributes:
        name: its unique name.
        shape: GGUF order: shape[0] is the length of a contiguous row, a whole number of blocks.
        format: how its elements are stored.
        offset: of its first byte, from the start of the file.
        size_bytes: of its data; offset + size_bytes lies within the file.
    """

    name: str
    shape: tuple[int, ...]
    format: TensorFormat
    offset: int
    size_bytes: int

    @property
    def elements(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True, slots=True)
class _Entry:
    """A tensor as the header lists it; `offset` counts from the start of the data section."""

    name: str
    shape: tuple[int, ...]
    format: TensorFormat
    offset: int


def read_tensors(cursor: Cursor, count: int, alignment: int) -> dict[str, TensorInfo]:
    """Read the table at the cursor and place its tensors in the data section, which starts after it.

    Returns:
        name -> tensor, in the table's order; all lie within the file and none overlap.

    Raises:
        ModelError: the table breaks the format, or a tensor's format is not supported.
    """
    entries: dict[str, _Entry] = {}
    for _ in range(count):
        entry = _read_entry(cursor)
        if entry.name in entries:
            cursor.fail(f"the tensor {entry.name!r} occurs twice")
        entries[entry.name] = entry
    data_start = -(-cursor.position // alignment) * alignment
    tensors = {name: _place(entry, data_start, alignment, cursor) for name, entry in entries.items()}
    _check_overlaps(tensors.values(), cursor)
    return tensors


def _read_entry(cursor: Cursor) -> _Entry:
    name = cursor.read_name("a tensor name")
    dimensions = cursor.u32(f"the dimension count of tensor {name!r}")
    if not 1 <= dimensions <= MAX_DIMENSIONS:
        cursor.fail(f"tensor {name!r} must have 1 to {MAX_DIMENSIONS} dimensions, got {dimensions}")
    shape = tuple(cursor.u64(f"the shape of tensor {name!r}") for _ in range(dimensions))
    type_id = cursor.u32(f"the format of tensor {name!r}")
    try:
        stored_as = TensorFormat(type_id)
    except ValueError:
        raise ModelError(
            f"{cursor.name}: tensor {name!r} has the format {format_name(type_id)}, which is not supported",
            f"Use a file whose tensors are among {supported_formats()}, such as a Q4_K_M one.",
        ) from None
    return _Entry(name, shape, stored_as, cursor.u64(f"the offset of tensor {name!r}"))


def _place(entry: _Entry, data_start: int, alignment: int, cursor: Cursor) -> TensorInfo:
    elements, row = math.prod(entry.shape), entry.shape[0]
    if not elements:
        cursor.fail(f"tensor {entry.name!r} has a dimension of 0")
    if row % entry.format.block_size:
        cursor.fail(
            f"the rows of tensor {entry.name!r} must be multiples of {entry.format.block_size}"
            f" elements in {entry.format.name}, got {row}"
        )
    if entry.offset % alignment:
        cursor.fail(f"the offset of tensor {entry.name!r} must be a multiple of {alignment}, got {entry.offset}")
    size = elements // entry.format.block_size * entry.format.block_bytes
    offset = data_start + entry.offset
    if offset + size > cursor.size:
        cursor.fail(f"tensor {entry.name!r} ends at byte {offset + size}, and the file has {cursor.size}")
    return TensorInfo(entry.name, entry.shape, entry.format, offset, size)


def _check_overlaps(tensors: Iterable[TensorInfo], cursor: Cursor) -> None:
    ordered = sorted(tensors, key=lambda tensor: tensor.offset)
    for before, after in itertools.pairwise(ordered):
        if before.offset + before.size_bytes > after.offset:
            cursor.fail(f"tensors {before.name!r} and {after.name!r} overlap at byte {after.offset}")
