"""The GGUF reader reads what the `gguf` package writes."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from tests.models.gguf_bytes import U32, U64, build, entry, tensor, text
from tests.tiny_gguf import MERGES, byte_tokens, write_tiny_model

from borrador.errors import ModelError
from borrador.models.gguf import GgufFile, TensorFormat

Open = Callable[[bytes], GgufFile]

# What is read ------------------------------------------------------------------------------------------------------


def test_metadata_of_every_type_comes_back_as_it_was_written(tmp_path: Path) -> None:
    writer = gguf.GGUFWriter(tmp_path / "m.gguf", "llama")
    written: dict[str, Any] = {
        "u8": 255, "i8": -128, "u16": 65535, "i16": -32768, "u32": 2**32 - 1, "i32": -(2**31), "u64": 2**64 - 1,
        "i64": -(2**63), "f32": 0.5, "f64": 0.1, "yes": True, "no": False, "text": "añ🙂"
    }  # fmt: skip
    adders: dict[str, Callable[[str, Any], None]] = {
        "u8": writer.add_uint8, "i8": writer.add_int8, "u16": writer.add_uint16, "i16": writer.add_int16,
        "u32": writer.add_uint32, "i32": writer.add_int32, "u64": writer.add_uint64, "i64": writer.add_int64,
        "f32": writer.add_float32, "f64": writer.add_float64, "yes": writer.add_bool, "no": writer.add_bool,
        "text": writer.add_string,
    }  # fmt: skip
    for key, add in adders.items():
        add(key, written[key])
    lists: dict[str, Any] = {
        "ints": [1, -2, 3], "floats": [0.5, -1.25], "flags": [True, False], "words": ["a", "bé", ""],
        "nested": [["a", "b"], ["c"]],
    }  # fmt: skip
    for key, value in lists.items():
        writer.add_array(key, value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with GgufFile.open(tmp_path / "m.gguf") as file:
        assert dict(file.metadata) == written | lists | {"general.architecture": "llama"}
        assert {key: type(file.metadata[key]) for key in written} == {key: type(written[key]) for key in written}


@pytest.mark.parametrize("stored_as", TensorFormat, ids=lambda item: item.name)
def test_tensors_lie_where_the_gguf_package_finds_them(tmp_path: Path, stored_as: TensorFormat) -> None:
    path = write_tiny_model(tmp_path / "m.gguf", "qwen2", format=stored_as)
    expected = gguf.GGUFReader(path)
    with GgufFile.open(path) as file:
        assert list(file.tensors) == [item.name for item in expected.tensors]
        for item in expected.tensors:
            found = file.tensors[item.name]
            assert found.shape == tuple(item.shape.tolist())
            assert int(found.format) == int(item.tensor_type)
            assert (found.offset, found.size_bytes) == (item.data_offset, item.n_bytes)
            assert bytes(file.tensor_bytes(item.name)) == item.data.tobytes()


def test_block_sizes_are_ggmls() -> None:
    sizes = {item: gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType(int(item))] for item in TensorFormat}
    assert {item: (item.block_size, item.block_bytes) for item in TensorFormat} == sizes


def test_the_vocabulary_comes_as_text(tmp_path: Path) -> None:
    with GgufFile.open(write_tiny_model(tmp_path / "m.gguf")) as file:
        tokens, merges = file.metadata["tokenizer.ggml.tokens"], file.metadata["tokenizer.ggml.merges"]
        assert isinstance(tokens, list)
        assert tokens[:256] == byte_tokens()
        assert tokens[-3:] == ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
        assert merges == [f"{left} {right}" for left, right in MERGES]


def test_version_2_is_read_too(open_bytes: Open) -> None:
    with open_bytes(build([entry("a", 4, U32.pack(7))], version=2)) as file:
        assert (file.version, dict(file.metadata)) == (2, {"a": 7})


def test_tokens_that_are_not_utf8_become_replacement_characters(open_bytes: Open) -> None:
    array = U32.pack(8) + U64.pack(2) + text(b"\xff\xfe") + text("fine")
    with open_bytes(build([entry("tokens", 9, array)])) as file:
        assert file.metadata["tokens"] == ["\ufffd\ufffd", "fine"]


def test_another_alignment_moves_the_data(open_bytes: Open) -> None:
    header = build([entry("general.alignment", 4, U32.pack(64))], [tensor("t", (4,))])
    content = header + b"\0" * (-len(header) % 64) + np.arange(4, dtype="<f4").tobytes()
    with open_bytes(content) as file:
        assert file.tensors["t"].offset % 64 == 0
        assert np.frombuffer(file.tensor_bytes("t"), "<f4").tolist() == [0, 1, 2, 3]


def test_tensor_data_cannot_be_written_and_outlives_the_file(tmp_path: Path) -> None:
    with GgufFile.open(write_tiny_model(tmp_path / "m.gguf")) as file:
        view = file.tensor_bytes("output_norm.weight")
        before = bytes(view)
        assert view.readonly
    assert bytes(view) == before


def test_released_data_stays_readable(tmp_path: Path) -> None:
    with GgufFile.open(write_tiny_model(tmp_path / "m.gguf")) as file:
        for name in file.tensors:
            before = bytes(file.tensor_bytes(name))
            file.release(name)
            assert bytes(file.tensor_bytes(name)) == before


def test_closing_twice_is_harmless(tmp_path: Path) -> None:
    file = GgufFile.open(write_tiny_model(tmp_path / "m.gguf"))
    file.close()
    file.close()


# Typed values ------------------------------------------------------------------------------------------------------


@pytest.fixture
def values(open_bytes: Open) -> GgufFile:
    nan, huge = struct.pack("<f", float("nan")), struct.pack("<f", float("inf"))
    numbers = U32.pack(4) + U64.pack(2) + U32.pack(1) + U32.pack(2)
    return open_bytes(
        build([
            entry("count", 4, U32.pack(7)), entry("big", 10, U64.pack(2**63)), entry("rate", 6, struct.pack("<f", 0.5)),
            entry("nan", 6, nan), entry("inf", 6, huge), entry("flag", 7, b"\1"), entry("word", 8, text("hi")),
            entry("list", 9, numbers),
        ])
    )  # fmt: skip


def test_typed_values_and_defaults(values: GgufFile) -> None:
    assert (values.integer("count"), values.integer("none", 3)) == (7, 3)
    assert (values.number("rate"), values.number("count"), values.number("none", 0.25)) == (0.5, 7.0, 0.25)
    assert (values.text("word"), values.text("none", "x")) == ("hi", "x")
    assert (values.flag("flag"), values.flag("none", False)) == (True, False)


@pytest.mark.parametrize(
    ("getter", "key", "shown"),
    [
        ("integer", "rate", "0.5"), ("integer", "flag", "True"), ("integer", "word", "'hi'"),
        ("integer", "big", "from 0 to 2147483647"), ("integer", "list", "a list of 2"),
        ("number", "nan", "nan"), ("number", "inf", "inf"), ("number", "flag", "True"), ("number", "word", "'hi'"),
        ("text", "count", "7"), ("flag", "count", "7"),
        ("integer", "none", "no metadata key"), ("number", "none", "no metadata key"),
        ("text", "none", "no metadata key"), ("flag", "none", "no metadata key"),
    ],
)  # fmt: skip
def test_a_value_of_the_wrong_kind_is_named(values: GgufFile, getter: str, key: str, shown: str) -> None:
    with pytest.raises(ModelError) as caught:
        getattr(values, getter)(key)
    assert f"'{key}'" in str(caught.value)
    assert shown in str(caught.value)


def test_an_unknown_tensor_is_named(values: GgufFile) -> None:
    for call in (values.tensor_bytes, values.release):
        with pytest.raises(ModelError, match="no tensor 'absent'"):
            call("absent")
