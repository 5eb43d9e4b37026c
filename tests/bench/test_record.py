from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.bench.records import SETTINGS, make_record

from borrador.bench.record import Record
from borrador.errors import UsageError


def changed(path: str, value: Any) -> str:
    """The record's JSON with one value changed; None removes it."""
    document = json.loads(make_record().to_json())
    *parents, last = path.split(".")
    place = document
    for name in parents:
        place = place[int(name) if name.isdigit() else name]
    if value is None:
        del place[last]
    else:
        place[int(last) if last.isdigit() else last] = value
    return json.dumps(document)


def test_record_comes_back_exactly(tmp_path: Path) -> None:
    record = make_record()
    assert Record.from_json(record.to_json()) == record
    path = tmp_path / "record.json"
    record.save(path)
    assert Record.read(path) == record
    assert [each.name for each in tmp_path.iterdir()] == ["record.json"]


def test_what_is_not_known_comes_back_as_such() -> None:
    record = make_record((), replace(SETTINGS, temperature=1.0, draft_tokens=4))
    bare = replace(record, row_costs=None, machine=replace(record.machine, memory_bytes=None))
    assert Record.from_json(bare.to_json()) == bare


def test_rounds_are_arrays_in_the_file_and_have_names_in_python() -> None:
    document = json.loads(make_record().to_json())
    assert document["pairs"][0]["speculative"]["rounds"][0] == [2, 4, 0.05, 0.1, 0.0, 0.2]
    figures = Record.from_json(make_record().to_json()).pairs[0].speculative.rounds[0]
    assert (figures.tokens, figures.rows, figures.total_s) == (2, 4, 0.2)


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        ("settings.temperature", "hot", r"expected `float`, got `str` - at `\$.settings.temperature`"),
        ("settings.start", "tepid", "invalid enum value 'tepid'"),
        ("settings.repeats", 0, "expected `int` >= 1"),
        ("machine", None, "missing required field `machine`"),
        ("pairs.0.plain.decode_s", -1.0, "expected `float` >= 0.0"),
        ("pairs.0.plain.rounds.0", [1, 2], "expected `array` of length"),
        ("row_costs.seconds", {"one": 1.0}, "expected `int`, got `str`"),
        ("model.sha256", "abc", "matching regex"),
        ("version", 0, "invalid enum value 0"),
    ],
)
def test_damaged_record_is_one_sentence_that_names_the_place(path: str, value: Any, sentence: str) -> None:
    with pytest.raises(UsageError, match=f"(?i)a.json must be a benchmark .*damaged: .*{sentence}") as caught:
        Record.from_json(changed(path, value), "a.json")
    assert caught.value.hint


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "must be JSON"),
        ("{", "must be JSON"),
        (b"\xff\xfe", "must be JSON"),
        ("[" * 100_000, "must be JSON"),
        ("[]", "and is none"),
        ('{"rows_ms": {}}', "and is none"),
        (changed("version", 2), "at most the version 1 of records, it has 2"),
    ],
)
def test_other_files_are_told_apart(content: str | bytes, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        Record.from_json(content)


def test_record_that_cannot_be_read_is_a_usage_error(tmp_path: Path) -> None:
    for path in (tmp_path / "none.json", tmp_path, Path("a\0b")):
        with pytest.raises(UsageError, match="cannot be read"):
            Record.read(path)


def test_a_record_without_a_score_has_none() -> None:
    record = make_record()
    document = json.loads(record.to_json())
    del document["score"]
    assert Record.from_json(json.dumps(document)) == record
