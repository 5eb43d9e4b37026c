"""Fixtures that tests of several packages share."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from borrador.models.download import resolve

# They tell tests and CI what to do; commands would say that they do not read them.
_OF_TESTS = ("BORRADOR_SKIP_CROSS", "BORRADOR_SOAK_S", "BORRADOR_SHEDDING_S")

# Every run tries the same examples, for as long as a busy machine takes.
settings.register_profile("same", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("same")

# A job in the background ignores Ctrl-C, and so would the programs in which tests press it.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def folders_of_our_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Nothing that tests learn of drafters gets into the user's folders, or comes from there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BORRADOR_PROFILES", str(tmp_path_factory.mktemp("profiles")))
        for name in _OF_TESTS:
            patch.delenv(name, raising=False)
        yield


@pytest.fixture(scope="session")
def model_path() -> Callable[[str], Path]:
    """Gives the file of a catalogue model, fetched as a user would on first use. For tests marked `real_model`."""
    return resolve
