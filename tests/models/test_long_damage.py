"""A hundred thousand damaged files: a model or an error of our own, in bounded memory (`make fuzz`: sanitised)."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from tests.tiny_gguf import write_tiny_model

from borrador.errors import BorradorError
from borrador.models.gguf import GgufFile, TensorFormat
from borrador.models.native import NativeModel
from borrador.models.target import Rows

pytestmark = pytest.mark.long
EXTREMES = (0, 1, 0x7F, 0x80, 0xFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 2**63 - 1, 2**64 - 1)


@pytest.fixture
def whole(tmp_path: Path) -> tuple[Path, bytearray, int]:
    """A file of about 4 KB without a vocabulary, its bytes, and where its tensor data begin."""
    path = write_tiny_model(
        tmp_path / "tiny.gguf",
        format=TensorFormat.Q8_0,
        width=32,
        layers=1,
        heads=2,
        kv_heads=1,
        ffn=32,
        vocabulary=32,
        tokenizer=False,
    )
    with GgufFile.open(path) as file:
        data_begin = min(tensor.offset for tensor in file.tensors.values())
    return path, bytearray(path.read_bytes()), data_begin


def try_to_write(path: Path) -> None:
    """Load the file and evaluate a few rows, if it is a model at all."""
    try:
        model = NativeModel.load(path, threads=1)
    except BorradorError:
        return
    sequence = model.open(16)
    size = model.config.vocabulary_size
    sequence.forward(Rows.chain([token % size for token in (1, 5, 9)]))
    sequence.commit(range(3))
    model.close()


def resident_megabytes() -> float:
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)


def test_a_file_cut_at_any_byte_is_refused(whole: tuple[Path, bytearray, int]) -> None:
    path, content, _ = whole
    for length in range(len(content)):
        path.write_bytes(content[:length])
        with pytest.raises(BorradorError):
            NativeModel.load(path, threads=1)


def test_a_hundred_thousand_damaged_headers_give_a_model_or_an_error_of_our_own(
    whole: tuple[Path, bytearray, int],
) -> None:
    path, content, data_begin = whole
    random = np.random.default_rng(2026)
    for _ in range(100_000):
        damaged = bytearray(content)
        for _ in range(int(random.integers(1, 5))):
            at = int(random.integers(0, data_begin))
            if random.random() < 0.5:
                damaged[at] = int(random.integers(0, 256))
            else:
                size = int(random.choice([1, 2, 4, 8]))
                value = int(EXTREMES[int(random.integers(len(EXTREMES)))]) % 2 ** (8 * size)
                damaged[at : at + size] = value.to_bytes(size, "little")
        path.write_bytes(damaged)
        try_to_write(path)
    assert resident_megabytes() < 512


def test_five_thousand_files_of_damaged_weights_do_not_stop_the_engine(whole: tuple[Path, bytearray, int]) -> None:
    path, content, data_begin = whole
    random = np.random.default_rng(7)
    for _ in range(5_000):
        damaged = bytearray(content)
        for at in random.integers(data_begin, len(content), int(random.integers(1, 64))):
            damaged[int(at)] = int(random.integers(0, 256))
        path.write_bytes(damaged)
        try_to_write(path)
