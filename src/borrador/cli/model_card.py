"""What a model file says about itself."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from borrador.cli.output import counted
from borrador.errors import ModelError
from borrador.models.config import ModelConfig
from borrador.models.gguf import GgufFile
from borrador.models.rounding import draft_bytes


def describe_file(path: Path) -> dict[str, Any]:
    """Facts about a GGUF file, whether its family can be run or not.

    Raises:
        ModelError: it is not a sound GGUF file.
    """
    with GgufFile.open(path) as file:
        family = file.architecture
        formats = Counter(tensor.format.name for tensor in file.tensors.values())
        tokens = file.metadata.get("tokenizer.ggml.tokens")
        return {
            "name": file.text("general.name", path.stem),
            "path": str(path),
            "family": family,
            "supported": _obstacle(file) is None,
            "obstacle": _obstacle(file),
            "parameters": sum(tensor.elements for tensor in file.tensors.values()),
            "formats": dict(formats.most_common()),
            "file_bytes": file.size_bytes,
            "weights_bytes": sum(tensor.size_bytes for tensor in file.tensors.values()),
            "draft_weights_bytes": draft_bytes(file),
            "layers": file.integer(f"{family}.block_count", 0),
            "context_tokens": file.integer(f"{family}.context_length", 0),
            "vocabulary_tokens": len(tokens) if isinstance(tokens, list) else 0,
            "tokenizer": file.text("tokenizer.ggml.model", ""),
            "chat_template": bool(file.text("tokenizer.chat_template", "")),
        }


def _obstacle(file: GgufFile) -> str | None:
    """Why the model cannot be run; None where it can."""
    try:
        ModelConfig.from_gguf(file)
    except ModelError as error:
        return str(error)
    return None


def readable(card: dict[str, Any]) -> list[tuple[str, str]]:
    """The same facts as labels and texts for people."""
    formats = ", ".join(f"{name} ({counted(count, 'tensor')})" for name, count in card["formats"].items())
    return [
        ("name", card["name"]),
        ("file", card["path"]),
        ("family", f"{card['family']}, {counted(card['layers'], 'layer')}"),
        ("can be run", "yes" if card["supported"] else f"no: {card['obstacle']}"),
        ("parameters", _in_millions(card["parameters"])),
        ("formats", formats),
        ("size", f"{card['file_bytes'] / 1e6:.1f} MB, of which weights {card['weights_bytes'] / 1e6:.1f} MB"),
        ("as a draft", _as_draft(card)),
        ("context", f"{card['context_tokens']} tokens"),
        ("vocabulary", f"{card['vocabulary_tokens']} tokens, {_describe_tokenizer(card['tokenizer'])}"),
        ("chat template", "in the file" if card["chat_template"] else "none in the file, ChatML is used"),
    ]


def _as_draft(card: dict[str, Any]) -> str:
    size = f"weights of {card['draft_weights_bytes'] / 1e6:.1f} MB"
    return f"{size}, wide ones rounded to Q4_0" if card["draft_weights_bytes"] < card["weights_bytes"] else size


def _describe_tokenizer(kind: str) -> str:
    return {"gpt2": "byte-level BPE", "llama": "SentencePiece", "": "no tokenizer"}.get(kind, kind)


def _in_millions(count: int) -> str:
    return f"{count / 1e9:.2f} billion" if count >= 1e9 else f"{count / 1e6:.1f} million"
