from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import typer
from release.manual import escape, page, write_pages

from borrador import __version__
from borrador.cli.app import app

ROOT = typer.main.get_command(app)
# What a page may use of the macros `man`, and of roff's escapes.
MACROS = {".TH", ".SH", ".PP", ".TP", ".B"}
ESCAPES = re.compile(r"\\(?:f[BIR]|-|e|&|\(aq|\(ga|\[u[0-9A-F]{4,6}\])")


def command_names(command: Any, name: str) -> list[str]:
    children = getattr(command, "commands", {}).items()
    return [name, *(found for own, child in children for found in command_names(child, f"{name}-{own}"))]


def test_there_is_a_page_for_the_program_and_for_every_command(tmp_path: Path) -> None:
    names = [path.name for path in write_pages(tmp_path / "man")]
    assert names[0] == "borrador.1"
    assert {f"{name}.1" for name in command_names(ROOT, "borrador")} == set(names)
    assert {"borrador-run.1", "borrador-history-clear.1"} <= set(names)
    assert {path.name for path in (tmp_path / "man").iterdir()} == set(names)


def test_pages_are_roff_that_every_formatter_knows(tmp_path: Path) -> None:
    for path in write_pages(tmp_path):
        text = path.read_text(encoding="utf-8")
        lines = text.splitlines()
        assert text.isascii()
        assert {line.split()[0] for line in lines if line.startswith(".")} <= MACROS
        assert not any(line.startswith("'") or not line.strip() for line in lines)
        assert "\\" not in ESCAPES.sub("", text)
        assert lines[0].startswith(".TH ")
        assert lines[1] == ".SH NAME"
        # `whatis` reads the line as name, hyphen, summary.
        assert re.fullmatch(r"borrador[a-z\\-]* \\- \S.*", lines[2])
        assert lines[-1].startswith("\\fBborrador")


def test_a_page_lists_the_options_with_what_they_take_and_their_defaults() -> None:
    text = page(ROOT, ("borrador", "run"))
    assert text.startswith(f'.TH "BORRADOR\\-RUN" 1 "" "borrador {__version__}" "Manual of borrador"\n')
    assert "\n.B borrador run\n[OPTIONS] [PROMPT]\n" in text
    entry = text[text.index("\\fB\\-n\\fR, \\fB\\-\\-max\\-tokens\\fR \\fIN\\fR\n") :]
    assert entry.splitlines()[1] == "Maximum tokens to write. [default: 512]"
    assert "\\fB\\-h\\fR, \\fB\\-\\-help\\fR\n" in text


def test_a_page_names_arguments_variables_and_exit_codes() -> None:
    assert ".SH ARGUMENTS\n.TP\n\\fIMODEL\\fR\n" in page(ROOT, ("borrador", "show"))
    assert "\\fBBORRADOR_PORT\\fR\nStands in for \\-\\-port.\n" in page(ROOT, ("borrador", "serve"))
    program = page(ROOT, ("borrador",))
    assert "\\fBBORRADOR_MODELS\\fR\n" in program
    assert "\\fB5\\fR\nSpeculative and plain decoding differ.\n" in program
    assert "\\fBborrador\\-doctor\\fR(1)\n" in program


@pytest.mark.parametrize(
    ("text", "printed"),
    [(".TH", "\\&.TH"), ("a\\b", "a\\eb"), ("--n 'x' `y`", "\\-\\-n \\(aqx\\(aq \\(gay\\(ga"), ("α", "\\[u03B1]")],
)
def test_text_is_printed_as_it_stands(text: str, printed: str) -> None:
    assert escape(text) == printed
