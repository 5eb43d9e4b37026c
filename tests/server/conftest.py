from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.server.rig import Rig, serve
from tests.server.writing import oracle, writing_llm

ANSWER = "Red, green and blue: 🟥 grün 한국."


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    """A server whose model answers `ANSWER`, drafted with every fourth token wrong."""
    with serve(writing_llm(ANSWER, oracle(ANSWER.encode()))) as running:
        yield running
