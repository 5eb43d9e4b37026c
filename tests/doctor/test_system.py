from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from borrador.doctor.system import System


def test_files_are_read_below_the_root_and_missing_ones_are_none(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("12\n", encoding="utf-8")
    (tmp_path / "b").write_text("max\n", encoding="utf-8")
    system = System(tmp_path, "linux")
    assert (system.text("a"), system.number("a"), system.number("b"), system.number("c")) == ("12", 12, None, None)


def test_of_fields_with_one_name_the_first_counts(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x : 1\nno field\nx : 2\nsize: 3 kB\nbad: many kB\n", encoding="utf-8")
    system = System(tmp_path, "linux")
    assert system.fields("a") == {"x": "1", "size": "3 kB", "bad": "many kB"}
    assert (system.kilobytes("a", "size"), system.kilobytes("a", "bad"), system.kilobytes("a", "none")) == (
        3072,
        None,
        None,
    )


def test_sysctl_is_asked_on_macos_only(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        asked.append(command)
        return subprocess.CompletedProcess(command, 0, stdout="8\n")

    monkeypatch.setattr(subprocess, "run", run)
    assert System(platform="linux").sysctl("hw.physicalcpu") is None
    assert System(platform="darwin").sysctl("hw.physicalcpu") == "8"
    assert asked == [["/usr/sbin/sysctl", "-n", "hw.physicalcpu"]]


def test_a_value_that_macos_does_not_know_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        raise subprocess.CalledProcessError(1, command)

    monkeypatch.setattr(subprocess, "run", run)
    assert System(platform="darwin").sysctl("sysctl.proc_translated") is None
