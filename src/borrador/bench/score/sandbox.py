"""A process of its own for code that a model wrote, with as few rights as this system can take away.

It is not a jail: it is made for what models write by mistake, and for cheap tricks. Code that is made to break out of
Python, or to deceive tests that run in its own process, needs a virtual machine.
"""

from __future__ import annotations

import contextlib
import functools
import json
import math
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, get_args

from borrador.bench.score.verdict import Outcome, Verdict
from borrador.errors import BorradorError

_INSIDE = Path(__file__).with_name("inside.py")
# -I: no environment, no folder of the user's. -S: the standard library alone.
_PYTHON = (sys.executable, "-I", "-S", "-B")
_NAMESPACES = ("--user", "--net", "--ipc", "--pid", "--fork", "--kill-child", "--")
_REPORT_BYTES = 4096
_PROBE_SECONDS = 30.0
_TRIAL = ("def one():\n    return 1\n", "def check(candidate):\n    assert candidate() == 1\n", "one")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one program may take.

    Attributes:
        seconds: by the clock, from the start of its process to its end.
        memory_bytes: of address space.
    """

    seconds: float = 10.0
    memory_bytes: int = 512 * 2**20

    def as_resources(self) -> dict[str, int]:
        """By their names in the module `resource`. Time by the processor is limited in case the clock's is evaded."""
        return {
            "RLIMIT_CPU": math.ceil(self.seconds) + 1,
            "RLIMIT_AS": self.memory_bytes,
            "RLIMIT_FSIZE": 64 * 1024,
            "RLIMIT_NOFILE": 32,
            "RLIMIT_NPROC": 0,
            "RLIMIT_CORE": 0,
        }


def require_sandbox() -> None:
    """Refuse where a program could not be limited, or a right one does not pass: that would be told of all answers.

    Raises:
        BorradorError: this is Windows, or a trial failed.
    """
    if os.name != "posix":
        raise BorradorError(
            f"--score runs code that a model wrote, and its sandbox needs Linux or macOS, this is {sys.platform}",
            "Score on Linux, for example in WSL.",
        )
    trial = run_tests(*_TRIAL, Limits(seconds=_PROBE_SECONDS))
    if not trial.passed:
        raise BorradorError(
            f"--score needs a sandbox in which a right program passes, and here one did not: {trial.detail}",
            "Look at the limits of this shell (ulimit -a), or score on another machine.",
        )


def describe_isolation() -> str:
    """What holds programs back on this machine."""
    everywhere = "limits of time and memory, no files, programs or sockets by an audit hook"
    return f"{everywhere}, no network and no other processes by namespaces" if _wrapper() else everywhere


def run_tests(program: str, test: str, entry_point: str, limits: Limits | None = None) -> Verdict:
    """Run a program, and then `check(entry_point)` of its tests, in a process that ends with all it began.

    Args:
        program: Python that defines the entry point.
        test: Python that defines `check`.
        entry_point: the function's name.
        limits: those of HumanEval's programs, if None.
    """
    limits = limits or Limits()
    secret = secrets.token_hex(16)
    job = {
        "program": program,
        "test": test,
        "entry_point": entry_point,
        "secret": secret,
        "limits": limits.as_resources(),
    }
    with tempfile.TemporaryFile() as question, tempfile.TemporaryFile() as answer:
        question.write(json.dumps(job).encode())
        question.seek(0)
        with _started(question, answer) as process:
            try:
                code = process.wait(limits.seconds)
            except subprocess.TimeoutExpired:
                return Verdict("timeout", f"not done after {limits.seconds:g} s")
        return _read_verdict(answer, secret, code)


@contextlib.contextmanager
def _started(question: IO[bytes], answer: IO[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    with tempfile.TemporaryDirectory(prefix="borrador-score-", ignore_cleanup_errors=True) as folder:
        process = subprocess.Popen(
            [*_wrapper(), *_PYTHON, str(_INSIDE)],
            cwd=folder,
            env={},
            stdin=question,
            stdout=answer,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@functools.cache
def _wrapper() -> tuple[str, ...]:
    """A command that starts another one in namespaces of its own; empty where there is none or it may not."""
    unshare = shutil.which("unshare")
    if unshare is None:
        return ()
    command = (unshare, *_NAMESPACES)
    try:
        probe = subprocess.run(
            [*command, *_PYTHON, "-c", ""], env={}, capture_output=True, timeout=_PROBE_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return command if probe.returncode == 0 else ()


def _read_verdict(answer: IO[bytes], secret: str, code: int) -> Verdict:
    answer.seek(0)
    said = answer.read(_REPORT_BYTES).decode("utf-8", "replace")
    name, _, detail = said.removeprefix(secret).partition("\n")
    outcome: Outcome | None = next((outcome for outcome in get_args(Outcome) if outcome == name), None)
    if outcome is None or not said.startswith(secret):
        return Verdict("error", _describe_end(code))
    return Verdict(outcome, "".join(character if character.isprintable() else " " for character in detail))


def _describe_end(code: int) -> str:
    how = f"with exit code {code}" if code >= 0 else f"by {signal.Signals(-code).name}"
    return f"ended before its tests did, {how}"
