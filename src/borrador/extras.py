"""Packages that only some commands need; `pip install 'borrador[EXTRA]'` brings them."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from types import MappingProxyType

# By the names under which they are imported.
EXTRAS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "plot": ("matplotlib",),
        "server": ("starlette", "uvicorn", "httptools", "pydantic", "prometheus_client"),
    }
)


def missing_packages(extra: str) -> tuple[str, ...]:
    """The packages of an extra that are not installed, as the package index calls them."""
    absent = (name for name in EXTRAS[extra] if importlib.util.find_spec(name) is None)
    return tuple(name.replace("_", "-") for name in absent)
