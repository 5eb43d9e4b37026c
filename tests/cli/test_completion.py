from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.conftest import ROOT, Borrador

from borrador.draft.history import History

Complete = Callable[[str], list[str]]


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BORRADOR_MODELS", str(tmp_path / "models"))
    monkeypatch.setenv("BORRADOR_HISTORY", str(tmp_path / "histories"))
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture
def complete(borrador: Borrador, monkeypatch: pytest.MonkeyPatch) -> Complete:
    """What bash is told for an unfinished command line."""

    def ask(line: str) -> list[str]:
        monkeypatch.setenv("_BORRADOR_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(line.count(" ")))
        result = borrador()
        monkeypatch.delenv("_BORRADOR_COMPLETE")
        assert (result.code, result.err) == (0, "")
        return result.out.split()

    return ask


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("borrador do", ["doctor"]),
        ("borrador history ", ["list", "clear"]),
        ("borrador run --draft-", ["--draft-tokens", "--draft-shortlist", "--draft-weights"]),
        ("borrador run -m smol", ["smollm2-135m"]),
        ("borrador serve --model qwen2.5-coder-1", ["qwen2.5-coder-1.5b"]),
        ("borrador show gemma", ["gemma3-270m"]),
        ("borrador pull qwen", ["qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b"]),
        ("borrador run -d s", ["suffix", "smollm2-135m"]),
        ("borrador run -d auto,s", ["auto,suffix", "auto,smollm2-135m"]),
        ("borrador bench -d suffix,s", ["suffix,smollm2-135m"]),
        ("borrador run -d lookup,n", []),
        ("borrador run --acceptance b", ["block"]),
        ("borrador run --draft-shortlist ", ["auto", "off"]),
        ("borrador serve --draft-weights ", ["auto", "q4_0", "file"]),
        ("borrador serve --stream-pacing f", ["fixed-interval"]),
        ("borrador run -m ./", []),
    ],
)
def test_bash_is_offered_what_fits(complete: Complete, line: str, words: list[str]) -> None:
    assert complete(line) == words


def test_files_of_the_models_folder_are_offered_by_their_paths(complete: Complete, tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    own = tmp_path / "models" / "own.gguf"
    own.write_bytes(b"")
    (tmp_path / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf").write_bytes(b"")
    assert complete("borrador rows -m /") == [str(own)]


def test_histories_on_this_disk_are_offered(complete: Complete) -> None:
    History("work", "a" * 64).remember([1, 2, 3])
    assert complete("borrador history clear ") == ["work"]
    assert complete("borrador run --history w") == ["work"]


def test_a_home_that_is_not_known_offers_the_catalogue(complete: Complete, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("BORRADOR_MODELS", "BORRADOR_HISTORY"):
        monkeypatch.setenv(variable, "~nobody-here/x")
    assert complete("borrador run -m smol") == ["smollm2-135m"]
    assert complete("borrador run --history ") == []


@pytest.mark.parametrize(
    ("shell", "environment", "shown"),
    [
        ("zsh", {"_TYPER_COMPLETE_ARGS": "borrador run -m smol"}, '"smollm2-135m":"98 MB, is fetched on first use"'),
        (
            "fish",
            {"_TYPER_COMPLETE_ARGS": "borrador run -d su", "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
            "suffix\tneeds no second model\n",
        ),
        (
            "powershell",
            {"_TYPER_COMPLETE_ARGS": "borrador run -d no", "_TYPER_COMPLETE_WORD_TO_COMPLETE": "no"},
            "none:::plain decoding\n",
        ),
    ],
)
def test_other_shells_are_told_what_the_words_are(
    borrador: Borrador, monkeypatch: pytest.MonkeyPatch, shell: str, environment: dict[str, str], shown: str
) -> None:
    for name, value in {**environment, "_BORRADOR_COMPLETE": f"complete_{shell}"}.items():
        monkeypatch.setenv(name, value)
    result = borrador()
    assert (result.code, result.err) == (0, "")
    assert shown in result.out


def test_fish_offers_files_where_nothing_fits(borrador: Borrador, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_BORRADOR_COMPLETE", "complete_fish")
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "is-args")
    for line, code in (("borrador run -m smol", 0), ("borrador run -m ./", 1)):
        monkeypatch.setenv("_TYPER_COMPLETE_ARGS", line)
        assert borrador().code == code


def test_a_shell_that_is_not_known_is_refused(borrador: Borrador, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_BORRADOR_COMPLETE", "complete_tcsh")
    result = borrador()
    assert (result.code, result.out) == (1, "")
    assert "tcsh" in result.err


@pytest.mark.parametrize(
    ("shell", "path"),
    [
        ("bash", ".bash_completions/borrador.sh"),
        ("zsh", ".zfunc/_borrador"),
        ("fish", ".config/fish/completions/borrador.fish"),
    ],
)
def test_completion_is_installed_for_the_shell_that_asks(
    borrador: Borrador, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, shell: str, path: str
) -> None:
    monkeypatch.setattr("shellingham.detect_shell", lambda: (shell, f"/bin/{shell}"))
    shown = borrador("--show-completion")
    installed = borrador("--install-completion")
    assert (shown.code, installed.code) == (0, 0)
    assert (tmp_path / path).read_text(encoding="utf-8").strip() == shown.out.strip()


def test_powershell_is_shown_how_to_complete(borrador: Borrador, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shellingham.detect_shell", lambda: ("pwsh", "pwsh"))
    result = borrador("--show-completion")
    assert (result.code, "Register-ArgumentCompleter -Native -CommandName borrador" in result.out) == (0, True)


def test_bash_completes_with_the_script_it_is_shown(tmp_path: Path) -> None:
    program = tmp_path / "bin" / "borrador"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m borrador "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    script = """
        eval "$(borrador --show-completion)"
        COMP_WORDS=(borrador run -d auto,s) COMP_CWORD=3
        _borrador_completion borrador
        echo "${COMPREPLY[@]}"
    """
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    result = subprocess.run(
        ["bash", "--norc", "-c", script], cwd=ROOT, env={**os.environ, "PATH": path}, capture_output=True, text=True
    )
    assert (result.stdout, result.stderr) == ("auto,suffix auto,smollm2-135m\n", "")


@pytest.mark.parametrize("given", [{}, {"COMP_WORDS": "borrador ru"}, {"COMP_WORDS": "borrador ru", "COMP_CWORD": "x"}])
def test_a_line_that_bash_does_not_tell_is_asked_for(
    borrador: Borrador, monkeypatch: pytest.MonkeyPatch, given: dict[str, str]
) -> None:
    for name, value in {"_BORRADOR_COMPLETE": "complete_bash", **given}.items():
        monkeypatch.setenv(name, value)
    result = borrador()
    assert (result.code, result.out) == (2, "")
    assert "COMP_WORDS and COMP_CWORD must say what is to be completed" in result.err
