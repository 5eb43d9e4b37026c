"""Where a benchmark ran: machine, versions, and the files of its models."""

from __future__ import annotations

import contextlib
import os
import platform
from pathlib import Path

import numpy as np

from borrador import __version__
from borrador.bench.files import as_name
from borrador.bench.record import Machine, ModelFile, Versions
from borrador.engine.profile import processor_name
from borrador.errors import ModelError
from borrador.models.catalogue import CATALOGUE
from borrador.models.download.files import sha256_of
from borrador.models.native import NativeModel
from borrador.models.target import Model
from borrador.models.weights import default_isa, default_threads


def describe_machine(model: Model) -> Machine:
    """The machine, and how the model uses it."""
    native = model if isinstance(model, NativeModel) else None
    return Machine(
        cpu=processor_name(),
        cores=default_threads(),
        threads=native.threads if native else 1,
        isa=native.isa if native else default_isa(),
        memory_bytes=_memory_bytes(),
        os=f"{platform.system()} {platform.release()} {platform.machine()}",
    )


def describe_versions() -> Versions:
    return Versions(borrador=__version__, python=platform.python_version(), numpy=np.__version__)


def describe_model(name: str, path: Path) -> ModelFile:
    """A model's file and its hash.

    Args:
        name: as the user gave it; that of a catalogue model was checked when it was found.
        path: its file.

    Raises:
        ModelError: the file cannot be read.
    """
    try:
        known = CATALOGUE[name].sha256 if name in CATALOGUE else sha256_of(path, lambda _done, _total: None)
        return ModelFile(name=as_name(path.name), bytes=path.stat().st_size, sha256=known)
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}", "Check its permissions.") from error


def _memory_bytes() -> int | None:
    with contextlib.suppress(ValueError, OSError, AttributeError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return None
