from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from borrador.extras import EXTRAS, missing_packages

ROOT = Path(__file__).parents[1]


def test_packages_that_are_missing_are_named_as_the_index_calls_them(monkeypatch: pytest.MonkeyPatch) -> None:
    assert missing_packages("server") == ()
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name in ("uvicorn", "prometheus_client") else find(name)
    )
    assert missing_packages("server") == ("uvicorn", "prometheus-client")


@pytest.mark.parametrize("extra", EXTRAS)
def test_every_package_of_an_extra_is_one_that_it_installs(extra: str) -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    listed = re.search(rf"^{extra} = \[(.*?)\]$", project, re.MULTILINE | re.DOTALL)
    assert listed is not None
    names = {name.replace("-", "_") for name in re.findall(r'"([A-Za-z0-9_-]+)', listed[1])}
    assert set(EXTRAS[extra]) <= names
