"""The GGUF reader refuses whatever is not a sound GGUF file, always with a ModelError that names the fault."""

from __future__ import annotations

import errno
import mmap
import os
import random
import struct
from collections.abc import Callable
from pathlib import Path

import gguf
import pytest
from tests.models.gguf_bytes import U32, U64, build, entry, tensor
from tests.tiny_gguf import write_tiny_model

from borrador.errors import MemoryLimitError, ModelError
from borrador.models.gguf import GgufFile, TensorFormat
from borrador.models.gguf import cursor as cursor_module
from borrador.models.gguf.formats import format_name

Open = Callable[[bytes], GgufFile]
ONE = [entry("a", 4, U32.pack(1))]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"PK\x03\x04" + bytes(60), "zip archive"),
        (b"\x80\x02}q\x00.", "pickle"),
        (U64.pack(60) + b'{"__metadata__":{"format":"pt"}}', "safetensors"),
        (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS pointer"),
        (b"<!DOCTYPE html>", "web page"),
        (b"tjgg" + bytes(60), "old GGJT"),
        (b"GGUF", "ends inside its header"),
        (b"GGUF" + struct.pack(">I", 3) + bytes(16), "big-endian"),
        (b"GGUF" + U32.pack(1) + bytes(16), "version 1"),
        (b"GGUF" + U32.pack(4) + bytes(16), "version 4"),
        (b"GG", "not a GGUF file"),
        (b"hello world, this is text", "starts with b'hell'"),
    ],
)
def test_other_files_are_told_by_their_first_bytes(open_bytes: Open, content: bytes, message: str) -> None:
    with pytest.raises(ModelError, match=message) as caught:
        open_bytes(content)
    assert caught.value.hint


def test_missing_directory_empty_and_special_files(tmp_path: Path) -> None:
    (tmp_path / "empty.gguf").touch()
    os.mkfifo(tmp_path / "pipe.gguf")
    cases = {"missing.gguf": "no model file", "": "a directory", "empty.gguf": "is empty", "pipe.gguf": "not a regular"}
    for name, message in cases.items():
        with pytest.raises(ModelError, match=message):
            GgufFile.open(tmp_path / name)
    for unusable in ("a\0b.gguf", "x" * 5000):
        with pytest.raises(ModelError, match="cannot be read"):
            GgufFile.open(unusable)


@pytest.mark.parametrize(
    ("type_id", "name"),
    [(22, "IQ2_S"), (19, "IQ1_S"), (35, "TQ2_0"), (28, "F64"), (4, "Q4_2"), (999, "unknown type 999")],
)
def test_an_unsupported_format_is_named_with_its_tensor(open_bytes: Open, type_id: int, name: str) -> None:
    with pytest.raises(ModelError, match=f"'blk.0.ffn_up.weight' has the format {name},") as caught:
        open_bytes(build([], [tensor("blk.0.ffn_up.weight", (256,), type_id)], bytes(4096)))
    assert all(item.name in caught.value.hint for item in TensorFormat)


def test_every_ggml_format_has_its_name() -> None:
    assert {item.name: format_name(item.value) for item in gguf.GGMLQuantizationType} == {
        item.name: item.name for item in gguf.GGMLQuantizationType
    }


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (build(ONE * 2), "'a' occurs twice"),
        (build([], [tensor("t", (8,)), tensor("t", (8,), 0, 32)], bytes(64)), "'t' occurs twice"),
        (build([], [tensor("a", (16,)), tensor("b", (8,), 0, 32)], bytes(64)), "'a' and 'b' overlap"),
        (build([], [tensor("a", (8,), 0, 0), tensor("b", (8,), 0, 0)], bytes(64)), "overlap"),
        (build([], [tensor("t", (9,), 0, 0)], bytes(32)), "ends at byte"),
        (build([], [tensor("t", (8,), 0, 64)], bytes(64)), "ends at byte"),
        (build([], [tensor("t", (8,), 0, 2**64 - 32)], bytes(64)), "ends at byte"),
        (build([], [tensor("t", (2**63, 2**63, 4))], bytes(64)), "ends at byte"),
        (build([], [tensor("t", (8,), 0, 4)], bytes(64)), "multiple of 32, got 4"),
        (build([], [tensor("t", (0, 8))], bytes(64)), "dimension of 0"),
        (build([], [tensor("t", ())], bytes(64)), "1 to 8 dimensions, got 0"),
        (build([], [tensor("t", (1,) * 9)], bytes(64)), "1 to 8 dimensions, got 9"),
        (build([], [tensor("t", (33,), 8)], bytes(64)), "multiples of 32 elements in Q8_0, got 33"),
        (build([], [tensor("", (8,))], bytes(64)), "is empty"),
        (build([entry(b"\xff", 4, U32.pack(1))]), "not valid UTF-8"),
        (build([entry("k", 13, bytes(8))]), "value type 13"),
        (build([entry("k", 7, b"\2")]), "neither 0 nor 1"),
        (build([entry("k" * 2000, 7, b"\1")]), "at most 256, got 2000"),
        (build([entry("k\x08", 7, b"\1")]), "cannot be printed"),
        (build([entry("general.alignment", 4, U32.pack(48))]), "power of two, got 48"),
        (build([entry("general.alignment", 4, U32.pack(0))]), "from 8 to 1048576, got 0"),
        (build([entry("general.alignment", 4, U32.pack(4))]), "from 8 to 1048576, got 4"),
        (build([entry("split.count", 2, b"\3\0")]), "one of 3 parts"),
        (build([entry("k", 9, (U32.pack(9) + U64.pack(1)) * 9)]), "more than 4 deep"),
        (build([entry("k", 9, U32.pack(0) + U64.pack(2**64 - 1))]), "at most"),
        (build([entry("k", 9, U32.pack(8) + U64.pack(1) + U64.pack(2**64 - 1))]), "may have at most"),
        (build([entry("k", 8, U64.pack(2**63) + b"short")]), "may have at most"),
        (build([entry("k", 9, U32.pack(10) + U64.pack(1000))]), "needs 8000 bytes"),
        (b"GGUF" + U32.pack(3) + U64.pack(2**64 - 1) + U64.pack(0), "at most 65536"),
        (b"GGUF" + U32.pack(3) + U64.pack(0) + U64.pack(2**64 - 1), "at most 65536"),
    ],
)  # fmt: skip
def test_a_broken_rule_is_named_with_its_value(open_bytes: Open, content: bytes, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        open_bytes(content)


def test_a_file_too_large_for_the_address_space_is_a_memory_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    path = tmp_path / "file.gguf"
    path.write_bytes(build([]))
    monkeypatch.setattr(mmap, "mmap", refuse)
    with pytest.raises(MemoryLimitError, match=r"file\.gguf does not fit into the address space"):
        GgufFile.open(path)


def test_all_arrays_together_are_bounded(open_bytes: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few bytes per item must not become unbounded memory: the limit counts items of all arrays, nested ones too."""
    monkeypatch.setattr(cursor_module, "MAX_ARRAY_ITEMS", 5)
    three = U32.pack(0) + U64.pack(3) + b"\1\2\3"
    with open_bytes(build([entry("a", 9, three)])) as file:
        assert file.metadata["a"] == [1, 2, 3]
    with pytest.raises(ModelError, match="'b' must be at most 2, got 3"):
        open_bytes(build([entry("a", 9, three), entry("b", 9, three)]))


# Damage ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def small(tmp_path: Path) -> bytes:
    path = write_tiny_model(
        tmp_path / "small.gguf", format=TensorFormat.Q4_0, width=32, ffn=32, layers=1, heads=2, kv_heads=1,
        vocabulary=8, tied=True, tokenizer=False,
        metadata={"tokenizer.ggml.tokens": [f"t{i}" for i in range(8)], "ints": [1, 2, 3], "flags": [True, False]},
    )  # fmt: skip
    return path.read_bytes()


def read_everything(file: GgufFile) -> None:
    with file:
        for name, info in file.tensors.items():
            assert len(bytes(file.tensor_bytes(name))) == info.size_bytes


def test_a_file_cut_at_any_byte_is_refused(small: bytes, open_bytes: Open) -> None:
    with open_bytes(small) as file:
        end = max(info.offset + info.size_bytes for info in file.tensors.values())
    for length in range(end):
        with pytest.raises(ModelError):
            open_bytes(small[:length])
    read_everything(open_bytes(small[:end]))


@pytest.mark.parametrize("size", [4, 8])
def test_any_field_set_to_an_extreme_gives_a_model_or_a_model_error(small: bytes, open_bytes: Open, size: int) -> None:
    with open_bytes(small) as file:
        header_bytes = min(info.offset for info in file.tensors.values())
    top = 2 ** (8 * size)
    extremes = [value.to_bytes(size, "little") for value in (0, 1, top // 2 - 1, top // 2, top - 2, top - 1)]
    for offset in range(header_bytes - size):
        for extreme in extremes:
            try_to_open(small[:offset] + extreme + small[offset + size :], open_bytes)


def test_random_damage_gives_a_model_or_a_model_error(small: bytes, open_bytes: Open) -> None:
    generator = random.Random(7)
    opened = sum(try_to_open(damage(small, generator), open_bytes) for _ in range(2000))
    assert 0 < opened < 2000  # some damage is invisible to the reader, much of it is not


def damage(content: bytes, generator: random.Random) -> bytes:
    broken = bytearray(content)
    for _ in range(generator.randint(1, 4)):
        position = generator.randrange(min(len(broken), 1500))
        kind = generator.randrange(3)
        if kind == 0:
            broken[position] = generator.randrange(256)
        elif kind == 1:
            del broken[position : position + generator.randint(1, 9)]
        else:
            broken[position:position] = generator.randbytes(generator.randint(1, 9))
    return bytes(broken)


def try_to_open(content: bytes, open_bytes: Open) -> bool:
    try:
        read_everything(open_bytes(content))
    except ModelError:
        return False
    return True
