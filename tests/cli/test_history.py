from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Borrador
from tests.cli.scripted_llm import ScriptedLLM

from borrador.draft.history import History


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BORRADOR_HISTORY", str(tmp_path))
    return tmp_path


def test_list_shows_names_and_sizes(borrador: Borrador, folder: Path) -> None:
    assert borrador("history", "list").out == f"there are no histories in {folder}\n"
    history = History("work", "a" * 64)
    history.remember([1, 2, 3])
    (folder / "old@0.history").write_bytes(b"?")
    result = borrador("history", "list")
    assert result.code == 0
    rows = [line.split() for line in result.out.splitlines()[2:4]]
    assert rows == [
        ["old", "damaged", "-", "0.0", "kB", "old@0.history"],
        ["work", "1", "3", "0.2", "kB", history.path.name],
    ]
    assert result.out.endswith(f"in {folder}, as token ids\n")
    listed = json.loads(borrador("history", "list", "--json").out)
    assert listed["folder"] == str(folder)
    assert [(entry["name"], entry["tokens"], entry["readable"]) for entry in listed["histories"]] == [
        ("old", None, False),
        ("work", 3, True),
    ]


def test_clear_deletes_one_history_or_all(borrador: Borrador, folder: Path) -> None:
    for name in ("home", "work"):
        History(name, "a" * 64).remember([1, 2, 3])
    assert borrador("history", "clear", "work").out == "1 file deleted\n"
    result = borrador("history", "clear", "work")
    assert (result.code, result.out) == (2, "")
    assert "there is no history work" in result.err
    assert borrador("history", "clear").out == "1 file deleted\n"
    assert borrador("history", "clear").out == "0 files deleted\n"


def test_history_without_a_command_shows_its_commands(borrador: Borrador) -> None:
    result = borrador("history")
    assert result.code == 0
    assert "list" in result.out
    assert "clear" in result.out


@pytest.mark.parametrize("command", ["run", "bench"])
def test_history_that_is_no_name_or_of_no_use_is_refused(
    borrador: Borrador, scripted: ScriptedLLM, command: str
) -> None:
    result = borrador(command, "--history", "../x")
    assert (result.code, result.out) == (2, "")
    assert "history must be 1 to 64 lower-case letters" in result.err
    result = borrador(command, "--history", "work", "-d", "lookup")
    assert (result.code, result.out) == (2, "")
    assert "history needs the drafter suffix, and draft is lookup" in result.err
