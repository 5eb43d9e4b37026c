"""Tells GGUF files from what users take for them, by their first bytes."""

from __future__ import annotations

import struct

from borrador.errors import ModelError

_CONVERT = "Convert it to GGUF, or download a .gguf file of the model."
_AGAIN = "Download it again; it may be damaged."
_LOOKALIKES = (
    (b"PK\x03\x04", "is a zip archive (PyTorch checkpoints are)", _CONVERT),
    (b"\x80\x02", "is a Python pickle, which can run code when opened", _CONVERT),
    (b"\x80\x03", "is a Python pickle, which can run code when opened", _CONVERT),
    (b"\x80\x04", "is a Python pickle, which can run code when opened", _CONVERT),
    (b"\x80\x05", "is a Python pickle, which can run code when opened", _CONVERT),
    (b"version https://git-lfs", "is a Git LFS pointer, not the model itself", "Run `git lfs pull`."),
    (b"<!DOCTYPE", "is a web page, not a model", "Use the download link of the file itself."),
    (b"<html", "is a web page, not a model", "Use the download link of the file itself."),
    (b"lmgg", "is in the old GGML format", _CONVERT),
    (b"fmgg", "is in the old GGMF format", _CONVERT),
    (b"tjgg", "is in the old GGJT format", _CONVERT),
)


def check_magic(head: bytes, name: str) -> int:
    """The GGUF version of a file that starts with `head` (64 bytes, or the whole file where it is shorter).

    Raises:
        ModelError: it is no GGUF file, is big-endian, or has a version other than 2 and 3.
    """
    if not head.startswith(b"GGUF"):
        raise _not_gguf(head, name)
    if len(head) < 8:
        raise ModelError(f"{name} ends inside its header, after {len(head)} bytes", _AGAIN)
    version: int = struct.unpack_from("<I", head, 4)[0]
    if version and version & 0xFFFF == 0:
        raise ModelError(f"{name} is a big-endian GGUF file", "Download the little-endian file of the model.")
    if version not in (2, 3):
        raise ModelError(f"{name} has GGUF version {version}, and versions 2 and 3 are supported", _CONVERT)
    return version


def _not_gguf(head: bytes, name: str) -> ModelError:
    for start, what, hint in _LOOKALIKES:
        if head.startswith(start):
            return ModelError(f"{name} {what}", hint)
    if _is_safetensors(head):
        return ModelError(f"{name} is a safetensors file, and GGUF is needed", _CONVERT)
    return ModelError(f"{name} is not a GGUF file: it starts with {head[:4]!r}, not b'GGUF'", _AGAIN)


def _is_safetensors(head: bytes) -> bool:
    """Safetensors start with the length of a JSON object, then the object."""
    return len(head) > 9 and head[8:9] == b"{" and 2 <= int.from_bytes(head[:8], "little") <= 100_000_000
