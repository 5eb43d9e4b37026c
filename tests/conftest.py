"""Fixtures that tests of several packages share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from borrador.models.download import resolve


@pytest.fixture(scope="session")
def model_path() -> Callable[[str], Path]:
    """Gives the file of a catalogue model, fetched as a user would on first use. For tests marked `real_model`."""
    return resolve
