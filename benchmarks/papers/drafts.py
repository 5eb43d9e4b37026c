"""Cheaper draft models made out of one: fewer layers, or another format of the same weights.

Files are written with the `gguf` package into the folder of models and used again the next time.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from numpy.typing import NDArray

from borrador.models.catalogue import models_folder
from borrador.models.gguf import GgufFile

_BLOCK = "blk."


def make_draft(source: Path, *, layers: int | None = None, quantisation: str | None = None) -> Path:
    """A draft model made of `source`; made only where it is not there yet.

    Args:
        layers: how many to keep, the first, the last, and those evenly between them; None keeps all.
        quantisation: of all matrices, one that the `gguf` package can make, such as `Q4_0`; None keeps theirs.
    """
    name = "-".join([source.stem, *([f"{layers}-layers"] if layers else []), *([quantisation] if quantisation else [])])
    made = models_folder() / "papers" / f"{name}.gguf"
    if not made.exists():
        made.parent.mkdir(parents=True, exist_ok=True)
        part = made.with_suffix(".part")
        write_draft(source, part, layers=layers, quantisation=quantisation)
        part.replace(made)
    return made


def write_draft(source: Path, out: Path, *, layers: int | None = None, quantisation: str | None = None) -> None:
    """Write what `make_draft` describes."""
    with GgufFile.open(source) as file:
        count_key = f"{file.architecture}.block_count"
        kept = kept_layers(file.integer(count_key), layers)
        writer = gguf.GGUFWriter(out, file.architecture)
        for key, value in file.metadata.items():
            if key != "general.architecture":
                kept_value = len(kept) if key == count_key else value
                writer.add_key_value(key, kept_value, _type_of(kept_value))
        for name in file.tensors:
            new = _new_name(name, kept)
            if new is not None:
                _add_tensor(writer, file, name, new, quantisation)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()


def kept_layers(count: int, kept: int | None) -> list[int]:
    """Which of `count` layers stay where `kept` of them do."""
    return [round(place) for place in np.linspace(0, count - 1, kept or count)]


def _new_name(name: str, kept: Sequence[int]) -> str | None:
    """The name of a tensor in the new file; None where its layer is left out."""
    if not name.startswith(_BLOCK):
        return name
    layer, rest = name.removeprefix(_BLOCK).split(".", 1)
    return f"{_BLOCK}{kept.index(int(layer))}.{rest}" if int(layer) in kept else None


def _add_tensor(writer: gguf.GGUFWriter, file: GgufFile, name: str, new: str, quantisation: str | None) -> None:
    info = file.tensors[name]
    stored = gguf.GGMLQuantizationType(int(info.format))
    # In NumPy's order, rows of bytes.
    data: NDArray[Any] = np.frombuffer(file.tensor_bytes(name), np.uint8).reshape(*reversed(info.shape[1:]), -1).copy()
    if stored == gguf.GGMLQuantizationType.F32:
        writer.add_tensor(new, data.view(np.float32))
    elif quantisation is None or info.shape[0] % 32:
        writer.add_tensor(new, data, raw_dtype=stored)
    else:
        wanted = gguf.GGMLQuantizationType[quantisation]
        values = gguf.dequantize(data, stored).reshape(*reversed(info.shape))
        writer.add_tensor(new, gguf.quantize(values, wanted), raw_dtype=wanted)


def _type_of(value: Any) -> gguf.GGUFValueType:
    return gguf.GGUFValueType.UINT32 if type(value) is int else gguf.GGUFValueType.get_type(value)
