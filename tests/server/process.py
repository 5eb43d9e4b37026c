"""A server in a process of its own, as `borrador serve` starts it, and what the system says of that process."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class ServerProcess:
    """A server that runs.

    Attributes:
        pid: of its process.
        url: of its root.
    """

    pid: int
    url: str

    @property
    def address(self) -> tuple[str, int]:
        url = httpx.URL(self.url)
        return url.host, url.port or 80

    def stats(self) -> dict[str, Any]:
        """What its scheduler counted."""
        told: dict[str, Any] = httpx.get(f"{self.url}/v1/borrador/stats", trust_env=False, timeout=60).json()
        return told

    def answers(self) -> int:
        """How many answers its metrics say have ended, for whatever reason."""
        lines = httpx.get(f"{self.url}/metrics", trust_env=False, timeout=60).text.splitlines()
        return int(sum(float(line.split()[-1]) for line in lines if line.startswith("borrador:answers_total{")))

    def resident_bytes(self) -> int:
        """Its memory."""
        return int(Path(f"/proc/{self.pid}/statm").read_text(encoding="ascii").split()[1]) * _PAGE_BYTES

    def open_files(self) -> int:
        """Its files and sockets."""
        return len(list(Path(f"/proc/{self.pid}/fd").iterdir()))


@contextlib.contextmanager
def serving_model(model: Path, *options: str) -> Iterator[ServerProcess]:
    """Serve a model's file until the end of the block; the server must then end by itself, without a fault."""
    words = [sys.executable, "-m", "borrador", "serve", "-m", str(model), "--port", "0", "--quiet", "--no-profile"]
    with subprocess.Popen([*words, *options], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            announced = process.stdout.readline()
            assert " at http://" in announced, announced
            yield ServerProcess(process.pid, announced.split(" at ")[1].split(",")[0])
            process.terminate()
            assert process.wait(60) == 0
        finally:
            process.kill()
