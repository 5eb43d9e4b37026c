"""Which tensors of a draft model become Q4_0 when it is loaded.

A step of a draft model takes as long as reading its weights does, and a draft that four bits make wrong now and then
costs less than the bits that would have made it right. Small models are often not a multiple of 256 wide, and their
files then have formats of five to eight bits where those of others have four. What has five or fewer stays: from Q4_1,
SmolLM2 lost more acceptance than the tenth of its step was worth.
"""

from __future__ import annotations

from collections.abc import Collection

from borrador.config import DraftWeights
from borrador.models.gguf import GgufFile, TensorFormat, TensorInfo

ROUNDED = TensorFormat.Q4_0
_FEW_BITS = 5  # a weight, block scales included
_WORTH_WHILE = 0.15  # share of a step's weights that rounding must save to be done unasked


def tensors_to_round(file: GgufFile, weights: DraftWeights) -> Collection[str]:
    """Names of the tensors to be kept as `ROUNDED`: those that a step reads and that have more than five bits a weight.

    Rows that are no whole number of blocks stay as they are, and so does what routes to experts.

    Args:
        file: the draft model's.
        weights: as `EngineConfig.draft_weights`.
    """
    if weights == "file":
        return ()
    read = [tensor for tensor in file.tensors.values() if _is_read(tensor, file)]
    wide = [tensor for tensor in read if _is_wide(tensor)]
    saved_bytes = sum(tensor.size_bytes - _rounded_bytes(tensor) for tensor in wide)
    if weights == "auto" and saved_bytes < _WORTH_WHILE * sum(tensor.size_bytes for tensor in read):
        return ()
    return frozenset(tensor.name for tensor in wide)


def draft_bytes(file: GgufFile, weights: DraftWeights = "auto") -> int:
    """Bytes of the file's tensors, were it loaded as a draft model."""
    rounded = tensors_to_round(file, weights)
    return sum(_rounded_bytes(each) if each.name in rounded else each.size_bytes for each in file.tensors.values())


def _is_read(tensor: TensorInfo, file: GgufFile) -> bool:
    """Whether every step reads this tensor as a whole. Of embeddings it reads rows, unless they are the LM head too."""
    return len(tensor.shape) > 1 and not (tensor.name == "token_embd.weight" and "output.weight" in file.tensors)


def _is_wide(tensor: TensorInfo) -> bool:
    whole_blocks = tensor.shape[0] % ROUNDED.block_size == 0
    return whole_blocks and "ffn_gate_inp" not in tensor.name and 8 * tensor.size_bytes > _FEW_BITS * tensor.elements


def _rounded_bytes(tensor: TensorInfo) -> int:
    return tensor.elements * ROUNDED.block_bytes // ROUNDED.block_size
