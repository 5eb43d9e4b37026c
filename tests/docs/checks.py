"""Commands that are too long or too far-reaching to be run: what they name must be there."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence

from tests.docs.snippets import ROOT


def check_target(words: Sequence[str]) -> None:
    found = subprocess.run(["make", "-n", *words[1:]], cwd=ROOT, capture_output=True, check=False)
    assert found.returncode == 0, found.stderr.decode()


def check_extra(words: Sequence[str]) -> None:
    _, action, *packages = words
    (package,) = packages
    match = re.fullmatch(r"(?:\.|borrador)(?:\[([a-z,]+)])?", package)
    assert action == "install"
    assert match, package
    for extra in match[1].split(",") if match[1] else ():
        assert re.search(rf"^{extra} = \[", _project(), re.MULTILINE), extra


def check_environment(words: Sequence[str]) -> None:
    assert words[1] == ".venv/bin/activate"
    assert "VENV := .venv\n" in (ROOT / "Makefile").read_text(encoding="utf-8")


def check_package(words: Sequence[str]) -> None:
    assert words[1] == "install"
    for package in words[2:]:
        assert re.search(rf"\b{re.escape(package)}\b", (ROOT / ".ci/run").read_text(encoding="utf-8"))


def check_marker(words: Sequence[str]) -> None:
    assert words[1] == "-m"
    for marker in set(words[2].split()) - {"not"}:
        assert f'    "{marker}: ' in _project(), marker


def _project() -> str:
    return (ROOT / "pyproject.toml").read_text(encoding="utf-8")
