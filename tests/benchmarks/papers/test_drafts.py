"""Draft models that are made of another one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from benchmarks.papers.drafts import kept_layers, make_draft, write_draft
from tests.tiny_gguf import write_tiny_model

from borrador.models.gguf import GgufFile, TensorFormat
from borrador.models.native import NativeModel
from borrador.models.target import Rows
from borrador.types import Float32Array


def logits(path: Path) -> Float32Array:
    model = NativeModel.load(path, threads=1)
    return np.array(model.open(16).forward(Rows.chain((1, 2, 3))))


def test_layers_are_kept_evenly_with_the_first_and_the_last() -> None:
    assert kept_layers(24, 12) == [0, 2, 4, 6, 8, 10, 13, 15, 17, 19, 21, 23]
    assert kept_layers(5, None) == [0, 1, 2, 3, 4]


def test_a_trimmed_model_computes_with_the_layers_that_it_keeps(tmp_path: Path) -> None:
    """The layer left out adds nothing to its input, so that nothing changes without it."""
    silent = {
        f"blk.1.{name}": np.zeros(shape, np.float32)
        for name, shape in (("attn_output.weight", (64, 64)), ("ffn_down.weight", (64, 96)))
    }
    source = write_tiny_model(tmp_path / "a.gguf", layers=3, width=64, ffn=96, tensors=silent)
    write_draft(source, tmp_path / "b.gguf", layers=2)
    with GgufFile.open(tmp_path / "b.gguf") as file:
        assert file.integer("llama.block_count") == 2
        assert "blk.2.attn_q.weight" not in file.tensors
    assert np.array_equal(logits(source), logits(tmp_path / "b.gguf"))


def test_a_requantised_model_is_smaller_and_nearly_the_same(tmp_path: Path) -> None:
    source = write_tiny_model(tmp_path / "a.gguf", format=TensorFormat.Q8_0)
    write_draft(source, tmp_path / "b.gguf", quantisation="Q4_0")
    with GgufFile.open(tmp_path / "b.gguf") as file:
        assert file.tensors["blk.0.ffn_up.weight"].format == TensorFormat.Q4_0
        assert file.tensors["output_norm.weight"].format == TensorFormat.F32
    before, after = logits(source), logits(tmp_path / "b.gguf")
    assert np.corrcoef(before.ravel(), after.ravel())[0, 1] == pytest.approx(1.0, abs=0.1)
    assert not np.array_equal(before, after)


def test_a_draft_model_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BORRADOR_MODELS", str(tmp_path))
    source = write_tiny_model(tmp_path / "tiny.gguf", layers=3)
    made = make_draft(source, layers=2)
    assert made == tmp_path / "papers" / "tiny-2-layers.gguf"
    source.unlink()
    assert make_draft(source, layers=2) == made
    assert [path.name for path in made.parent.iterdir()] == [made.name]
