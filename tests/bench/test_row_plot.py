from __future__ import annotations

import sys
from pathlib import Path

import pytest

from borrador.bench.row_cost import RowCosts
from borrador.bench.row_plot import draw_rows, require_plot_file
from borrador.errors import BorradorError, UsageError

COSTS = RowCosts({1: 0.010, 8: 0.015}, weights_bytes=10**8, read_bandwidth=20e9, row_macs=10**8, integer_peak=1e11)


def test_the_plot_is_an_svg_that_names_the_model_and_both_limits(tmp_path: Path) -> None:
    path = tmp_path / "rows.svg"
    draw_rows(COSTS, "tiny.gguf", path)
    text = path.read_text(encoding="utf-8")
    assert text.startswith("<?xml")
    for words in ("T(m) of tiny.gguf", "weights / memory bandwidth", "products / integer peak", "measured T(m)"):
        assert words in text


def test_a_file_that_is_no_svg_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"rows\.png"):
        require_plot_file(tmp_path / "rows.png")


def test_a_missing_folder_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nowhere"):
        require_plot_file(tmp_path / "nowhere" / "rows.svg")


def test_a_missing_plotting_library_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(BorradorError, match="matplotlib") as error:
        require_plot_file(tmp_path / "rows.svg")
    assert "borrador[plot]" in error.value.hint


def test_a_file_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "rows.svg").mkdir()
    with pytest.raises(BorradorError, match="cannot be written"):
        draw_rows(COSTS, "tiny.gguf", tmp_path / "rows.svg")
