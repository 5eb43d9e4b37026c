from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.cli.scripted_llm import ScriptedLLM

from borrador.cli import bench, chat, entry, run

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Result:
    """What a command did."""

    code: int
    out: str
    err: str


Borrador = Callable[..., Result]


@pytest.fixture
def borrador(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Borrador:
    """Runs a command in this process, with standard input from `stdin`."""

    def invoke(*words: str, stdin: bytes = b"") -> Result:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        code = entry.main(words)
        captured = capsys.readouterr()
        return Result(code, captured.out, captured.err)

    return invoke


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> ScriptedLLM:
    """The model behind `run`, `bench` and `chat` in this test."""
    llm = ScriptedLLM()
    for module in (run, bench, chat):
        monkeypatch.setattr(module, "open_llm", lambda *_, **__: llm)
        monkeypatch.setattr(module, "follow_plan", lambda _model, config, **__: config)
    monkeypatch.setattr("borrador.bench.start.beside", lambda llm: llm)
    return llm


def start(
    *words: str,
    module: str = "tests.cli.scripted_llm",
    environment: Mapping[str, str] | None = None,
    stdin: int = subprocess.DEVNULL,
    stdout: int = subprocess.PIPE,
    stderr: int = subprocess.PIPE,
) -> subprocess.Popen[bytes]:
    """Start a command in a process of its own."""
    base = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    return subprocess.Popen(
        [sys.executable, "-m", module, *words],
        cwd=ROOT,
        env={**base, "TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8", **(environment or {})},
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
    )
