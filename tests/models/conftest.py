"""Fixtures of the model tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from borrador.models.gguf import GgufFile


@pytest.fixture
def open_bytes(tmp_path: Path) -> Callable[[bytes], GgufFile]:
    def open_file(content: bytes) -> GgufFile:
        path = tmp_path / "file.gguf"
        path.write_bytes(content)
        return GgufFile.open(path)

    return open_file


Open = Callable[[bytes], GgufFile]
