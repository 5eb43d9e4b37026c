from __future__ import annotations

import os
from pathlib import Path

import pytest

from borrador.bench.files import as_name, require_writable, write_whole
from borrador.errors import BorradorError, UsageError


def test_file_is_replaced_whole_and_nothing_else_is_left(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_whole(path, "old")
    with path.open() as reader:
        write_whole(path, "né")
        assert reader.read() == "old", "whoever reads it meets one of the two"
    assert path.read_text("utf-8") == "né"
    assert [each.name for each in tmp_path.iterdir()] == ["a.json"]
    assert path.stat().st_mode & 0o400


def test_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    link = tmp_path / "a.json"
    link.symlink_to(tmp_path / "folder" / "b.json")
    write_whole(link, "text")
    assert link.is_symlink()
    assert (tmp_path / "folder" / "b.json").read_text() == "text"


def test_what_fails_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("old")
    with pytest.raises(UnicodeEncodeError):
        write_whole(path, "\ud800")
    assert [each.name for each in tmp_path.iterdir()] == ["a.json"]
    assert path.read_text() == "old"


@pytest.mark.parametrize(
    ("name", "sentence"),
    [("a.txt", "ends in .json"), ("none/a.json", "existing folder"), ("folder.json", "something else")],
)
def test_wrong_place_is_told_before_anything_is_measured(tmp_path: Path, name: str, sentence: str) -> None:
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(UsageError, match=sentence):
        require_writable(tmp_path / name, "--save", ".json")


def test_right_place_is_left_as_it_was(tmp_path: Path) -> None:
    require_writable(tmp_path / "a.json", "--save", ".json")
    assert list(tmp_path.iterdir()) == []


def test_folder_that_cannot_be_written_is_told() -> None:
    with pytest.raises(BorradorError, match="cannot be written"):
        require_writable(Path(f"/proc/{os.getpid()}/a.json"), "--save", ".json")


def test_name_that_no_terminal_or_file_could_show_is_made_one() -> None:
    assert as_name("caf\u00e9-\u6587\u3000\u00a0 1") == "caf\u00e9-\u6587\u3000\u00a0 1"
    assert as_name("a\x1b[31m\nb\udcff\x85\u2028") == "a?[31m?b???"
