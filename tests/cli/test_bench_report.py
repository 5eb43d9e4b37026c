from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.bench.records import make_record
from tests.cli.conftest import Borrador
from tests.cli.scripted_llm import ScriptedLLM

from borrador.bench.page.render import render_page
from borrador.bench.record import Record


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "record.json"
    make_record().save(path)
    return path


def test_a_saved_benchmark_becomes_a_page_beside_it(borrador: Borrador, saved: Path) -> None:
    result = borrador("bench", "report", str(saved))
    page = saved.with_suffix(".html")
    assert (result.code, result.out, result.err) == (0, "", f"report in {page}\n")
    assert page.read_text("utf-8") == render_page(make_record())


def test_the_page_goes_where_it_is_told_to(borrador: Borrador, saved: Path, tmp_path: Path) -> None:
    page = tmp_path / "other.html"
    result = borrador("bench", "report", str(saved), "-o", str(page), "-q")
    assert (result.code, result.out, result.err) == (0, "", "")
    assert page.read_text("utf-8").startswith("<!doctype html>")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other.html", "record.json"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("absent.json",), "the record absent.json cannot be read"),
        (("",), "cannot be read"),
        (("{saved}", "-o", "page.pdf"), "--output writes a file that ends in .html, got 'page.pdf'"),
        (("{saved}", "-o", "absent/page.html"), "--output needs an existing folder"),
        (("{damaged}",), "must be JSON, and is not"),
    ],
)
def test_what_cannot_be_read_or_written_is_a_usage_error(
    borrador: Borrador, saved: Path, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    damaged = tmp_path / "damaged.json"
    damaged.write_text("{")
    result = borrador("bench", "report", *(word.format(saved=saved, damaged=damaged) for word in words))
    assert (result.code, result.out) == (2, "")
    assert said in result.err
    assert len(result.err.splitlines()) == 2
    assert not list(tmp_path.glob("*.html"))


def test_a_measurement_writes_its_own_page(borrador: Borrador, scripted: ScriptedLLM, tmp_path: Path) -> None:
    model, prompts, record, page = (tmp_path / name for name in ("m.gguf", "p.txt", "r.json", "r.html"))
    model.write_bytes(b"abc")
    prompts.write_text("One?\n\nTwo?\n")
    words = ("bench", "-m", str(model), "-d", "lookup", "--prompts", str(prompts))
    result = borrador(*words, "--save", str(record), "--report", str(page))
    assert result.code == 0
    assert f"report in {page}\n" in result.err
    assert page.read_text("utf-8") == render_page(Record.read(record))
    record.unlink()
    assert borrador(*words, "--report", str(page), "-q").err == ""
    assert not record.exists()


def test_a_page_that_cannot_be_written_is_refused_before_anything_is_measured(
    borrador: Borrador, scripted: ScriptedLLM, tmp_path: Path
) -> None:
    result = borrador("bench", "--report", os.fspath(tmp_path / "page.txt"))
    assert result.code == 2
    assert "--report writes a file that ends in .html" in result.err
    assert scripted.prompts == []
