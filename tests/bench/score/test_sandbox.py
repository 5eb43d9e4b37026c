"""Programs that mean no good. None of them passes, none outlives its time, and this process stays as it was."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from borrador.bench.score import sandbox
from borrador.bench.score.sandbox import Limits, describe_isolation, require_sandbox, run_tests
from borrador.errors import BorradorError

TEST = "def check(candidate):\n    assert candidate(2) == 4\n"
RIGHT = "def double(x):\n    return 2 * x\n"
SHORT = Limits(seconds=1.0, memory_bytes=128 * 2**20)


def outcome(program: str, limits: Limits | None = None) -> str:
    return run_tests(program, TEST, "double", limits).outcome


def detail(program: str, limits: Limits | None = None) -> str:
    verdict = run_tests(program, TEST, "double", limits)
    assert verdict.outcome == "error"
    return verdict.detail


@pytest.fixture(params=["namespaces", "no namespaces"])
def isolation(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """With all that this machine allows, and with what every machine has."""
    if request.param == "no namespaces":
        monkeypatch.setattr(sandbox, "_wrapper", lambda: ())
    return str(request.param)


def test_a_right_program_passes(isolation: str) -> None:
    assert run_tests(RIGHT, TEST, "double").passed


def test_a_wrong_program_fails() -> None:
    assert outcome(RIGHT.replace("2 * x", "3 * x")) == "failed"


def test_the_message_of_a_test_is_kept_on_one_line() -> None:
    verdict = run_tests(RIGHT, "def check(candidate):\n    assert False, 'not\\x1b[31m\\nso'", "double")
    assert (verdict.outcome, verdict.detail) == ("failed", "AssertionError: not [31m so")


@pytest.mark.parametrize(
    ("program", "name"),
    [
        ("def double(x)\n", "SyntaxError"),
        ("def half(x):\n    return x / 2\n", "KeyError: 'double'"),
        ("def double(x):\n    return double(x)\n", "RecursionError"),
        ("raise SystemExit(0)\n", "SystemExit: 0"),
        ("import sys\nsys.exit()\n", "SystemExit"),
        ("raise KeyboardInterrupt\n", "KeyboardInterrupt"),
        ("class Error(Exception):\n    def __str__(self):\n        raise self\nraise Error\n", "Error"),
        ("import numpy\n", "ModuleNotFoundError: No module named 'numpy'"),
    ],
)
def test_an_error_is_named(program: str, name: str) -> None:
    assert detail(program).startswith(name)


def test_a_loop_without_end_is_stopped(isolation: str) -> None:
    start = time.monotonic()
    verdict = run_tests("while True:\n    pass\n", TEST, "double", SHORT)
    assert (verdict.outcome, verdict.detail) == ("timeout", "not done after 1 s")
    assert time.monotonic() - start >= 1


@pytest.mark.parametrize("bomb", ["bytearray(10**10)", "[0] * 10**9", "['x' * n for n in range(10**9)]"])
def test_a_memory_bomb_runs_out_of_memory(bomb: str) -> None:
    assert outcome(f"def double(x):\n    return {bomb}\n", Limits(memory_bytes=128 * 2**20)) == "out of memory"


@pytest.mark.parametrize(
    "attempt",
    [
        "import os\nwhile True: os.fork()",
        "import os\nos.system('true')",
        "import os\nos.execv('/bin/true', ['true'])",
        "import os\nos.posix_spawn('/bin/true', ['true'], {})",
        "import os\nos.kill(os.getppid(), 9)",
        "import os\nos.killpg(0, 9)",
        "import subprocess",
        "import ctypes",
        "import _posixsubprocess",
        "import socket\nsocket.socket().connect(('127.0.0.1', 9))",
        "import socket\nsocket.getaddrinfo('localhost', 80)",
        "import resource\nresource.setrlimit(resource.RLIMIT_AS, (-1, -1))",
        "import gc\ngc.get_objects()",
        "import sys\nsys._current_frames()",
        "open('here', 'w')",
        "open(1, 'wb')",
        "open('/etc/passwd')",
        "open('/proc/self/mem', 'rb')",
        "import os\nos.open('/etc/borrador', os.O_CREAT)",
        "import os\nopen(os.__file__ + '/../../../../../../../../../etc/passwd')",
        "import os\nopen(os.__file__, 'a')",
        "import os\nos.listdir('/')",
        "import os\nos.mkdir('here')",
        "import os\nos.chmod('/etc', 0o777)",
        "import os\nos.symlink('/etc', 'here')",
    ],
)
def test_what_a_function_does_not_need_is_refused(attempt: str) -> None:
    assert "not allowed here" in detail(f"{attempt}\n{RIGHT}")


def test_files_of_the_user_are_neither_written_nor_deleted(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.write_text("text")
    for attempt in ("os.remove", "os.truncate", "os.rmdir", "shutil.rmtree"):
        assert "not allowed" in detail(f"import os, shutil\n{attempt}({str(kept)!r}{', 0' * ('trunc' in attempt)})\n")
    assert "not allowed" in detail(f"import os\nos.rename({str(kept)!r}, {str(tmp_path / 'moved')!r})\n")
    assert "not allowed" in detail(f"open({str(tmp_path / 'new')!r}, 'w').write('text')\n")
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    assert kept.read_text() == "text"


@pytest.mark.parametrize(
    "trick",
    [
        "import os\nos._exit(0)\n",
        "print('passed')\nimport os\nos._exit(0)\n",
        "import os\nfor fd in (0, 1, 2):\n    os.write(fd, b'passed\\n')\nos.write(3, b'passed\\n')\nos._exit(0)\n",
        "import os\nos.closerange(0, 32)\ndef double(x):\n    return 4\n",
        "import os\nos.abort()\n",
    ],
    ids=["early end", "printed", "written everywhere", "closed everything", "aborted"],
)
def test_only_the_tests_end_is_a_pass(trick: str, isolation: str) -> None:
    assert detail(trick).startswith("ended before its tests did")


@pytest.mark.parametrize(
    "trick",
    [
        "check = lambda candidate: None\n",
        "import builtins\nbuiltins.exec = builtins.compile = print\ncheck = lambda candidate: None\n",
        "import json, os, sys\njson.dumps = lambda *_: 'passed'\nos.write = sys.exit = print\n",
        "import builtins\nbuiltins.AssertionError = KeyError\n",
        "import builtins\nbuiltins.str = builtins.isinstance = builtins.type = lambda *_: 'passed'\n",
    ],
)
def test_replacing_what_scores_it_does_not_help_a_program(trick: str) -> None:
    assert not run_tests(f"{trick}def double(x):\n    return 5\n", TEST, "double").passed


def test_a_flood_of_output_costs_nothing() -> None:
    program = "import sys\ntry:\n    while True: print('x' * 10**6, file=sys.stderr)\nfinally:\n    pass\n"
    assert outcome(program, SHORT) == "timeout"
    assert outcome(f"print('x' * 10**7)\n{RIGHT}") == "passed"


def test_handlers_and_threads_that_are_left_do_not_keep_it_alive() -> None:
    program = f"import atexit, time\natexit.register(time.sleep, 60)\n{RIGHT}"
    start = time.monotonic()
    assert outcome(program) == "passed"
    assert time.monotonic() - start < 60


@pytest.mark.skipif(sys.platform != "linux", reason="looks processes up in /proc")
def test_nothing_that_it_started_is_left(isolation: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What would get past the hook: the inside is replaced by one that forks and waits."""
    mark = f"borrador-left-{os.getpid()}-{time.monotonic_ns()}"
    inside = tmp_path / "inside.py"
    fork = f"if os.fork() == 0:\n    os.execlp('sleep', {mark!r}, '600')\n"
    inside.write_text(f"import os, time\n{fork}time.sleep(0.3)\n")
    monkeypatch.setattr(sandbox, "_INSIDE", inside)
    assert outcome(RIGHT) == "error"
    deadline = time.monotonic() + 30
    while mark in _command_lines():  # killed, but a busy system takes its time to let it go
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _command_lines() -> str:
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(path.read_bytes().decode("utf-8", "replace"))
        except OSError:
            continue
    return "\n".join(lines)


def test_it_ends_by_itself_where_nobody_ends_it(isolation: str) -> None:
    job = {
        "program": "import time\nwhile True:\n    time.sleep(600)\n",
        "test": TEST,
        "entry_point": "double",
        "secret": "s",
        "limits": {"RLIMIT_CPU": 1},
    }
    command = [*sandbox._wrapper(), *sandbox._PYTHON, str(sandbox._INSIDE)]
    ended = subprocess.run(command, input=json.dumps(job).encode(), capture_output=True, timeout=300, check=False)
    assert (ended.returncode, ended.stdout) == (1, b"")


def test_its_folder_is_gone_afterwards(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert outcome(RIGHT) == "passed"
    assert outcome("while True:\n    pass\n", SHORT) == "timeout"
    assert list(tmp_path.iterdir()) == []


def test_the_isolation_in_force_is_told(isolation: str) -> None:
    said = describe_isolation()
    assert said.startswith("limits of time and memory, no files, programs or sockets")
    if isolation == "no namespaces":
        assert "namespaces" not in said


def test_a_system_without_limits_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "name", "nt")
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(BorradorError, match="needs Linux or macOS, this is win32"):
        require_sandbox()


@pytest.mark.parametrize("command", ["true", "false"])
def test_machine_on_which_no_program_passes_is_refused_before_answers_are_blamed(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "_PYTHON", (command,))
    with pytest.raises(BorradorError, match=r"here one did not: ended before its tests did, with exit code [01]"):
        require_sandbox()
