"""A misspelt variable of the environment is not ignored in silence."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.cli.conftest import ROOT, Borrador

from borrador.cli.variables import GENERAL, describe_unread


def served() -> set[str]:
    return {"BORRADOR_PORT", "BORRADOR_HOST"}


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        ([], ""),
        (["BORRADOR_MODELS", "BORRADOR_PORT", "PATH", "borrador_x", "_BORRADOR_COMPLETE"], ""),
        (["BORRADOR_MODLES"], "no command reads BORRADOR_MODLES (did you mean BORRADOR_MODELS?)"),
        (["BORRADOR_PROT"], "no command reads BORRADOR_PROT (did you mean BORRADOR_PORT?)"),
        (["BORRADOR_UNLIKE_ANY", "BORRADOR_B"], "no command reads BORRADOR_B, BORRADOR_UNLIKE_ANY"),
        (["BORRADOR_\x1b[31m"], ""),
    ],
)
def test_variables_that_nothing_reads_are_named_with_what_was_meant(names: list[str], sentence: str) -> None:
    assert describe_unread(names, served) == sentence


def test_a_command_says_so_in_one_line_and_runs(borrador: Borrador, monkeypatch: pytest.MonkeyPatch) -> None:
    quiet = borrador("list", "--json")
    monkeypatch.setenv("BORRADOR_ALLOWED_HSOT", "example.org")
    told = borrador("list", "--json")
    assert (told.code, told.out) == (0, quiet.out)
    note = "note: no command reads BORRADOR_ALLOWED_HSOT (did you mean BORRADOR_ALLOWED_HOST?)\n"
    assert told.err == note + quiet.err


def test_no_variable_that_the_program_reads_is_called_unread(
    borrador: Borrador, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = [*Path(ROOT, "src").rglob("*.py"), *Path(ROOT, "native").rglob("*.cpp")]
    named = {name for path in code for name in re.findall(r'"(BORRADOR_[A-Z_]+)"', path.read_text(encoding="utf-8"))}
    assert named > GENERAL.keys()
    for name in named - GENERAL.keys():
        monkeypatch.setenv(name, "1")
    assert "no command reads" not in borrador("list").err
