from __future__ import annotations

from pathlib import Path

import pytest

from borrador.errors import ModelError, UsageError
from borrador.folders import user_folder


def test_the_variable_wins_over_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BORRADOR_TEST_FOLDER", "/some/where")
    assert user_folder("BORRADOR_TEST_FOLDER", "~/.cache/x") == Path("/some/where")
    monkeypatch.setenv("BORRADOR_TEST_FOLDER", "")
    assert user_folder("BORRADOR_TEST_FOLDER", "~/.cache/x") == Path.home() / ".cache" / "x"


def test_a_home_that_is_not_known_is_an_error_with_a_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BORRADOR_TEST_FOLDER", raising=False)
    with pytest.raises(UsageError, match="home folder of ~nobody-here/x is not known"):
        user_folder("BORRADOR_TEST_FOLDER", "~nobody-here/x")
    with pytest.raises(ModelError):
        user_folder("BORRADOR_TEST_FOLDER", "~nobody-here/x", ModelError)
