"""How the program behaves towards pipes, terminals and signals; each test starts a process."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys

import pytest
from tests.cli.conftest import ROOT, start
from tests.cli.scripted_llm import ANSWER

from borrador import __version__


def test_no_escape_sequence_reaches_a_pipe() -> None:
    out, err = start("run", "--trace", "Hello", environment={"FORCE_COLOR": "1"}).communicate(timeout=120)
    assert out.decode() == ANSWER
    assert b"\x1b" not in err


@pytest.mark.parametrize(("environment", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_terminal_gets_colour_unless_no_color_is_set(environment: dict[str, str], coloured: bool) -> None:
    controller, terminal = pty.openpty()
    process = start("run", "--trace", "Hello", environment=environment, stderr=terminal)
    os.close(terminal)
    shown = _read_terminal(controller)
    assert process.communicate(timeout=120)[0].decode() == ANSWER
    assert (b"\x1b" in shown) is coloured


def test_on_one_screen_the_trace_and_the_answer_do_not_mix() -> None:
    out, _ = start("run", "--trace", "Hello", stderr=subprocess.STDOUT).communicate(timeout=120)
    lines = out.decode().splitlines()
    assert [line.split()[0] for line in lines] == ["✓", "round", "round", "round", "The", "7"]
    assert lines[4] == ANSWER


def test_on_one_screen_every_answer_has_its_rounds_below_its_header() -> None:
    words = ("run", "--trace", "--n", "2", "--temp", "1", "Hello")
    out, _ = start(*words, stderr=subprocess.STDOUT).communicate(timeout=120)
    one = ["round", "round", "round", "The", "7"]
    assert [line.split()[:1] for line in out.decode().splitlines()] == [[word] for word in ("✓", "==", *one)] + [
        [],
        *([word] for word in ("==", *one)),
    ]


def test_closed_pipe_ends_the_program_quietly() -> None:
    process = start("--slow", "run", "Hello")
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.read(3)
    process.stdout.close()
    assert process.wait(timeout=120) == 0
    assert process.stderr.read() == b""
    process.stderr.close()


@pytest.mark.parametrize("words", [("--version",), ("--help",), ("list",), ("run", "Hello")])
def test_pipe_that_nobody_reads_is_no_error(words: tuple[str, ...]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    process = start(*words, stdout=writer)
    os.close(writer)
    _, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (0, b"")


def test_interrupt_keeps_what_was_written_and_ends_with_130() -> None:
    process = start("--slow", "run", "Hello")
    assert process.stdout is not None
    first = process.stdout.read(11)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, first) == (130, b"The capital")
    assert (ANSWER * 1000).encode().startswith(first + out)
    assert b"tokens per pass" in err
    assert b"Traceback" not in err


def test_interrupt_still_gives_the_whole_json_object() -> None:
    process = start("--slow", "run", "--json", "--trace", "Hello")
    assert process.stderr is not None
    process.stderr.readline()
    process.stderr.readline()
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 130
    assert b'"finish_reason": "cancelled"' in out
    assert out.endswith(b"}\n")


def test_interrupt_among_several_answers_ends_them_all() -> None:
    process = start("--slow", "run", "--n", "3", "--temp", "1", "Hello")
    assert process.stdout is not None
    header = process.stdout.readline()
    process.stdout.read(11)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=120)
    assert (process.returncode, header) == (130, b"== answer 1 of 3 ==\n")
    assert b"==" not in out


def test_full_disk_is_an_error_and_not_a_traceback() -> None:
    with open("/dev/full", "wb") as full:  # noqa: PTH123
        process = start("run", "-q", "Hello", stdout=full.fileno())
        _, err = process.communicate(timeout=120)
    assert process.returncode == 1
    sentence, hint = err.decode().splitlines()
    assert sentence == "error: the system refused an operation: No space left on device"
    assert hint.startswith("hint: Check that the disk has room")


@pytest.mark.parametrize(
    ("redirection", "code", "out"), [("2>&-", 0, ANSWER), (">&-", 1, ""), ("<&-", 0, ANSWER), (">&- 2>&-", 1, "")]
)
def test_closed_streams_are_no_crash(redirection: str, code: int, out: str) -> None:
    line = f"{sys.executable} -m tests.cli.scripted_llm run --trace Hello {redirection}"
    result = subprocess.run(line, shell=True, cwd=ROOT, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert (result.returncode, result.stdout) == (code, out)
    assert "Traceback" not in result.stderr


def test_tables_on_a_pipe_have_no_blanks_at_the_end_of_a_line() -> None:
    lines = start("list").communicate(timeout=120)[0].decode().splitlines()
    assert lines[0].split() == ["name", "on", "disk", "size", "model"]
    assert lines == [line.rstrip() for line in lines]


def test_narrow_terminal_cuts_no_word_off() -> None:
    controller, terminal = pty.openpty()
    process = start("list", environment={"COLUMNS": "20"}, stdout=terminal)
    os.close(terminal)
    shown = _read_terminal(controller).decode()
    assert process.communicate(timeout=120)[1] == b""
    assert "qwen2.5-coder-0.5b" in shown
    assert "…" not in shown


def test_package_can_be_run_as_a_module() -> None:
    out, err = start("--version", module="borrador").communicate(timeout=120)
    assert (out.decode(), err) == (f"borrador {__version__}\n", b"")


def test_version_is_answered_without_importing_anything_heavy() -> None:
    program = "import sys; from borrador.cli.entry import main; main(['--version']); print(sorted(sys.modules))"
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True).stdout
    version, modules = out.splitlines()
    assert version == f"borrador {__version__}"
    assert not [name for name in ("numpy", "typer", "rich", "jinja2", "tokenizers") if repr(name) in modules]


def _read_terminal(controller: int) -> bytes:
    shown = b""
    while True:
        try:
            chunk = os.read(controller, 65536)
        except OSError:
            break
        if not chunk:
            break
        shown += chunk
    os.close(controller)
    return shown
