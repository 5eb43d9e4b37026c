from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.bench.records import PAIRS, SETTINGS, make_pair, make_record
from tests.cli.conftest import Borrador


@pytest.fixture
def saved(tmp_path: Path) -> tuple[str, str]:
    a, b = tmp_path / "a.json", tmp_path / "b.json"
    make_record().save(a)
    pairs = (*PAIRS[:2], make_pair("qa-9", "qa", 2.0))
    make_record(pairs, replace(SETTINGS, draft=("lookup",))).save(b)
    return str(a), str(b)


def test_differences_speeds_and_prompts_of_one_side_are_shown(borrador: Borrador, saved: tuple[str, str]) -> None:
    result = borrador("bench", "compare", *saved)
    rows = [line.split() for line in result.out.splitlines()]
    assert (result.code, result.err) == (0, "")
    assert ["settings.draft", "suffix,", "draft.gguf", "lookup"] in rows
    assert ["plain", "tok/s", "10.0", "10.0", "1.00x", "1.00-1.00"] in rows
    assert "2 prompts in both, 2 with identical answers\n" in result.out
    assert "in A only: code-1\n" in result.out
    assert "in B only: qa-9\n" in result.out


def test_json_has_the_same_numbers(borrador: Borrador, saved: tuple[str, str]) -> None:
    entry = json.loads(borrador("bench", "compare", *saved, "--json").out.splitlines()[-1])
    assert entry["change"]["plain"] == {"median": 1.0, "interval": [1.0, 1.0]}
    assert entry["differences"] == {"settings.draft": {"a": "suffix, draft.gguf", "b": "lookup"}}
    assert (entry["prompts"], entry["identical"], entry["only_b"]) == (2, 2, ["qa-9"])


def test_equal_records_are_told_to_be_so(borrador: Borrador, saved: tuple[str, str]) -> None:
    result = borrador("bench", "compare", saved[0], saved[0])
    assert "machine, models, settings and versions are the same" in result.out


def test_damaged_record_names_its_file(borrador: Borrador, saved: tuple[str, str]) -> None:
    Path(saved[1]).write_text(Path(saved[1]).read_text()[:-9])
    result = borrador("bench", "compare", *saved)
    assert (result.code, result.out) == (2, "")
    assert "b.json must be JSON" in result.err
