"""Folders of our own, and the models in them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from borrador.doctor.facts import Folder, ModelFile
from borrador.draft.history import history_folder
from borrador.engine.profile import Profile, profile_folder
from borrador.engine.settings import read_settings
from borrador.models.catalogue import CATALOGUE, models_folder


def examine_folders() -> tuple[Folder, ...]:
    """The folders of models, profiles and histories. Raises UsageError or ModelError where no home is known."""
    purposes = {"models": models_folder(), "profiles": profile_folder(), "histories": history_folder()}
    return tuple(_examine(purpose, path) for purpose, path in purposes.items())


def _examine(purpose: str, path: Path) -> Folder:
    nearest = next((folder for folder in (path, *path.parents) if folder.exists()), path)
    return Folder(
        purpose=purpose,
        path=path,
        exists=path.is_dir(),
        writable=nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK),
        used_bytes=sum(_sizes(path)),
        disk_free_bytes=_disk_free(nearest),
    )


def _sizes(folder: Path) -> Iterator[int]:
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                yield (Path(place) / name).lstat().st_size
            except OSError:  # gone meanwhile
                continue


def _disk_free(folder: Path) -> int | None:
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return None


def examine_models(isa: str, threads: int) -> tuple[ModelFile, ...]:
    """The GGUF files of the models folder: those of the catalogue in its order, then others by name."""
    known = {entry.path: entry.name for entry in CATALOGUE.values()}
    others = sorted(path for path in models_folder().glob("*.gguf") if path not in known)
    present = (path for path in (*known, *others) if path.is_file())
    return tuple(examine_model(path, known.get(path, str(path)), isa, threads) for path in present)


def examine_model(path: Path, name: str, isa: str, threads: int) -> ModelFile:
    """A model's file, without its content."""
    size = path.stat().st_size
    profile = find_profile(path, isa, threads)
    settings = None if profile is None else read_settings(profile)
    return ModelFile(
        name=name,
        path=path,
        file_bytes=size,
        whole=name not in CATALOGUE or size == CATALOGUE[name].size_bytes,
        planned=() if settings is None else settings.draft,
    )


def find_profile(path: Path, isa: str, threads: int) -> Profile | None:
    """What was learnt of a model; None where its file cannot be read."""
    try:
        return Profile.of(path, isa=isa, threads=threads)
    except OSError:
        return None
