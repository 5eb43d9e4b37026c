"""Runs commands of the documentation: each by the program it names, on tiny models."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest
from tests.docs import checks, small
from tests.docs.snippets import ROOT

from borrador.cli import entry

_ASSIGNMENT = re.compile(r"[A-Z_]+=\S*")
_OPERATORS = {"|", ">", "<", ";", "&&", "2>"}
_PATIENCE_S = 300


@dataclass
class Stage:
    """Where commands are run.

    Attributes:
        folder: the current one of all commands.
        environment: of them.
        server: the address of a server that answers.
        done: commands that have been run; the same one is run once.
    """

    folder: Path
    environment: Mapping[str, str]
    server: str
    done: set[str] = field(default_factory=set)

    def run(self, text: str) -> None:
        """Run a command; it must end well, and be one that is known here."""
        words = shlex.split(text, comments=True)
        while _ASSIGNMENT.fullmatch(words[0]):
            words = words[1:]
        if Path(words[0]).name == "borrador":
            words = ["borrador", *small.shrink(words[1:], self.server)]
        key = " ".join(dict.fromkeys(words))
        if key not in self.done:
            self._runner(words, text)(words)
            self.done.add(key)

    def _runner(self, words: Sequence[str], text: str) -> Callable[[Sequence[str]], None]:
        if _needs_a_shell(text):
            return lambda _: self._run_in_shell(text)
        runners: Mapping[str, Callable[[Sequence[str]], None]] = {
            "borrador": self._run_borrador,
            "curl": self._ask,
            "make": checks.check_target,
            "pip": checks.check_extra,
            "source": checks.check_environment,
            "apt-get": checks.check_package,
            "pytest": checks.check_marker,
        }
        if words[0] not in runners:
            raise LookupError(f"no test knows how to run: {text}")
        return runners[words[0]]

    def _run_borrador(self, words: Sequence[str]) -> None:
        _, *arguments = words
        if arguments[:1] == ["serve"] and "--help" not in arguments:
            return self._serve(arguments)
        err = io.StringIO()
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(err), typing("Name a river.\n"):
            code = entry.main(arguments)
        assert (code, "error:" in err.getvalue()) == (0, False), f"{arguments} said {err.getvalue()}"
        return None

    def _serve(self, arguments: Sequence[str]) -> None:
        with serving(arguments, self.environment, self.folder) as url:
            assert httpx.get(f"{url}/health", trust_env=False, timeout=_PATIENCE_S).status_code == 200

    def _ask(self, words: Sequence[str]) -> None:
        """What curl would send, sent without curl, which a machine may lack."""
        url, headers, body = _read_curl(words[1:])
        fields = {**json.loads(body), "max_tokens": 8} if body else None
        method = "POST" if body else "GET"
        address = url.replace(small.SERVER, self.server)
        answer = httpx.request(method, address, headers=headers, json=fields, trust_env=False, timeout=_PATIENCE_S)
        assert answer.status_code == 200, answer.text

    def _run_in_shell(self, text: str) -> None:
        path = os.pathsep.join([str(self.folder / "bin"), os.environ["PATH"]])
        found = subprocess.run(
            ["sh", "-e", "-c", text],
            cwd=self.folder,
            env={**os.environ, **self.environment, "PATH": path},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PATIENCE_S,
            check=False,
        )
        assert found.returncode == 0, f"{text} said {found.stderr.decode()}"


@contextlib.contextmanager
def staged(folder: Path) -> Iterator[Stage]:
    """A stage in a folder, with its models, its files, and a server."""
    environment = small.set_up(folder)
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), *filter(None, map(os.path.abspath, sys.path))])
    arguments = ["serve", "-m", "smollm2-135m", *small.LIMITS["serve"]]
    with serving(arguments, environment, folder) as url, pytest.MonkeyPatch.context() as patch:
        _write_programs(folder / "bin")
        environment["TEST_SERVER"] = url
        for name, value in environment.items():
            patch.setenv(name, value)
        patch.chdir(folder)
        patch.syspath_prepend(folder)
        yield Stage(folder, environment, url)


@contextlib.contextmanager
def serving(arguments: Sequence[str], environment: Mapping[str, str], folder: Path) -> Iterator[str]:
    """The address of a server in a process of its own, which must end well when it is told to."""
    process = subprocess.Popen(
        [sys.executable, "-m", "borrador", *arguments],
        cwd=folder,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    with process:
        line = process.stdout.readline().decode()
        try:
            yield line.split()[3].rstrip(",") if line else ""
        finally:
            process.send_signal(signal.SIGTERM)
            _, err = process.communicate(timeout=_PATIENCE_S)
    assert process.returncode == 0, err.decode()


@contextlib.contextmanager
def typing(text: str) -> Iterator[None]:
    """Standard input that holds a text."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode()), encoding="utf-8"))
        yield


def _needs_a_shell(text: str) -> bool:
    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    return text.startswith(("for ", "python ")) or bool(_OPERATORS & set(lexer))


def _write_programs(folder: Path) -> None:
    folder.mkdir()
    for name, words in (("borrador", "-m tests.docs.small"), ("python", "-m tests.docs.small_python")):
        program = folder / name
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" {words} "$@"\n', encoding="utf-8")
        program.chmod(0o755)


def _read_curl(words: Sequence[str]) -> tuple[str, dict[str, str], str]:
    url, headers, body = "", {}, ""
    options = iter(words)
    for word in options:
        if word == "-H":
            name, _, value = next(options).partition(": ")
            headers[name] = value
        elif word == "-d":
            body = next(options)
        elif word.startswith("http"):
            url = word
        else:
            raise LookupError(f"no test knows this option of curl: {word}")
    return url, headers, body
