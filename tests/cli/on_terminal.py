"""A program on a terminal of its own. `python -m tests.cli.on_terminal MODULE ARGUMENTS` takes the terminal over."""

from __future__ import annotations

import os
import pty
import re
import runpy
import select
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

ROOT = Path(__file__).parents[2]
_ESCAPES = re.compile(rb"\x1b(\[[0-9;?]*[a-zA-Z]|[=>])")
_PATIENCE_S = 60.0


class Terminal:
    """A program whose streams are a terminal, and the person in front of it.

    Args:
        words: arguments of `borrador`, or of the scripted program.
        module: which program.
        environment: added to this one's.
    """

    def __init__(self, *words: str, module: str = "tests.cli.scripted_llm", environment: Mapping[str, str]) -> None:
        base = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
        self._controller, terminal = pty.openpty()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.cli.on_terminal", module, *words],
            cwd=ROOT,
            env={**base, "TERM": "xterm-256color", "PROMPT_TOOLKIT_NO_CPR": "1", "COLUMNS": "200", **environment},
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            start_new_session=True,
        )
        os.close(terminal)
        self.shown = b""
        self._seen = 0

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        os.close(self._controller)

    @property
    def text(self) -> str:
        """What was shown so far, without colours and cursor movements."""
        return _ESCAPES.sub(b"", self.shown).decode(errors="replace")

    def type(self, keys: str) -> None:
        """Press keys; `\\r` is Enter, `\\x03` Ctrl-C, `\\x04` Ctrl-D."""
        os.write(self._controller, keys.encode())

    def expect(self, text: str) -> str:
        """Wait for a text, later than the last one that was waited for; what was shown up to its end."""
        deadline = time.monotonic() + _PATIENCE_S
        while (found := self.text.find(text, self._seen)) < 0:
            if not self._read(deadline):
                raise AssertionError(f"{text!r} was not shown: {self.text[self._seen :]!r}")
        start, self._seen = self._seen, found + len(text)
        return self.text[start : self._seen]

    def ask(self, line: str) -> None:
        """Wait for the prompt and answer it."""
        self.expect(">>>")
        self.type(line + "\r")

    def wait(self) -> int:
        """The exit code, once the program has ended."""
        deadline = time.monotonic() + _PATIENCE_S
        while self._read(deadline):
            pass
        return self._process.wait(timeout=_PATIENCE_S)

    def _read(self, deadline: float) -> bool:
        readable, _, _ = select.select([self._controller], [], [], max(deadline - time.monotonic(), 0))
        try:
            chunk = os.read(self._controller, 65536) if readable else b""
        except OSError:
            return False
        self.shown += chunk
        return bool(chunk)


if __name__ == "__main__":
    os.close(os.open(os.ttyname(0), os.O_RDWR))  # a session's first terminal becomes its controlling one
    sys.argv = sys.argv[1:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
