"""Versions, and what is not installed."""

from __future__ import annotations

import platform
from importlib import metadata

from borrador import __version__
from borrador.doctor.facts import Software
from borrador.draft.plugin import find_plugins
from borrador.extras import EXTRAS, missing_packages

_PACKAGES = (
    "numpy",
    "tokenizers",
    "sentencepiece",
    "jinja2",
    "typer",
    "rich",
    "huggingface_hub",
    "httpx",
    "prompt_toolkit",
    "llguidance",
)


def examine_software() -> Software:
    """What is installed."""
    missing = {extra: missing_packages(extra) for extra in EXTRAS}
    return Software(
        borrador=__version__,
        python=f"{platform.python_implementation()} {platform.python_version()}",
        system=f"{platform.system()} {platform.release()}",
        packages={name: version for name in _PACKAGES if (version := _version(name)) is not None},
        missing_extras={extra: names for extra, names in missing.items() if names},
        drafters=tuple(find_plugins()),
    )


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
