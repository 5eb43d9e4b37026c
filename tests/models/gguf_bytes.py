"""Builds GGUF files byte by byte, so that they can break the rules."""

from __future__ import annotations

import struct

U32, U64 = struct.Struct("<I"), struct.Struct("<Q")


def text(value: str | bytes) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return U64.pack(len(raw)) + raw


def entry(key: str | bytes, type_id: int, content: bytes) -> bytes:
    return text(key) + U32.pack(type_id) + content


def tensor(name: str, shape: tuple[int, ...], type_id: int = 0, offset: int = 0) -> bytes:
    return text(name) + U32.pack(len(shape)) + b"".join(map(U64.pack, shape)) + U32.pack(type_id) + U64.pack(offset)


def build(entries: list[bytes], tensors: list[bytes] | None = None, data: bytes = b"", version: int = 3) -> bytes:
    """A whole file; its data section starts at a multiple of 32 bytes."""
    tensors = tensors or []
    counts = U64.pack(len(tensors)) + U64.pack(len(entries))
    header = b"GGUF" + U32.pack(version) + counts + b"".join(entries) + b"".join(tensors)
    return header + b"\0" * (-len(header) % 32) + data
