"""The GGML tensor formats: which exist, which this engine computes with, and how their blocks are laid out.

Block sizes follow ggml's `ggml-common.h`; https://github.com/ggml-org/ggml/blob/master/docs/gguf.md lists the type ids.
"""

from __future__ import annotations

import enum

_BLOCKS = {  # type id: (elements per block, bytes per block)
    0: (1, 4),
    1: (1, 2),
    2: (32, 18),
    3: (32, 20),
    6: (32, 22),
    7: (32, 24),
    8: (32, 34),
    10: (256, 84),
    11: (256, 110),
    12: (256, 144),
    13: (256, 176),
    14: (256, 210),
    20: (32, 18),
    23: (256, 136),
    30: (1, 2),
    39: (32, 17),
}


class TensorFormat(enum.IntEnum):
    """A supported tensor format; the value is its GGML type id."""

    F32 = 0
    F16 = 1
    Q4_0 = 2
    Q4_1 = 3
    Q5_0 = 6
    Q5_1 = 7
    Q8_0 = 8
    Q2_K = 10
    Q3_K = 11
    Q4_K = 12
    Q5_K = 13
    Q6_K = 14
    IQ4_NL = 20
    IQ4_XS = 23
    BF16 = 30
    MXFP4 = 39

    @property
    def block_size(self) -> int:
        """Elements in one block; a row is a whole number of blocks."""
        return _BLOCKS[self][0]

    @property
    def block_bytes(self) -> int:
        """Bytes of one block."""
        return _BLOCKS[self][1]


GGML_TYPE_NAMES = {
    **{item.value: item.name for item in TensorFormat},
    4: "Q4_2",
    5: "Q4_3",
    9: "Q8_1",
    15: "Q8_K",
    16: "IQ2_XXS",
    17: "IQ2_XS",
    18: "IQ3_XXS",
    19: "IQ1_S",
    21: "IQ3_S",
    22: "IQ2_S",
    24: "I8",
    25: "I16",
    26: "I32",
    27: "I64",
    28: "F64",
    29: "IQ1_M",
    31: "Q4_0_4_4",
    32: "Q4_0_4_8",
    33: "Q4_0_8_8",
    34: "TQ1_0",
    35: "TQ2_0",
    36: "IQ4_NL_4_4",
    37: "IQ4_NL_4_8",
    38: "IQ4_NL_8_8",
    40: "NVFP4",
    41: "Q1_0",
}


def format_name(type_id: int) -> str:
    """The name ggml gives to a type id, also for formats that are not supported."""
    return GGML_TYPE_NAMES.get(type_id, f"unknown type {type_id}")


def supported_formats() -> str:
    """The supported formats as a list to show to a user."""
    return ", ".join(item.name for item in TensorFormat)
