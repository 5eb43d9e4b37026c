from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.tiny_gguf import write_tiny_model

from borrador.doctor.disk import examine_folders, examine_models
from borrador.engine.profile import Profile
from borrador.engine.settings import Settings


@pytest.fixture(autouse=True)
def _folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("models", "profiles", "history"):
        monkeypatch.setenv(f"BORRADOR_{name.upper()}", str(tmp_path / name))
    (tmp_path / "models").mkdir()


def test_models_of_the_catalogue_come_first_with_their_names(tmp_path: Path) -> None:
    write_tiny_model(tmp_path / "models" / "another.gguf")
    (tmp_path / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf").write_bytes(b"GGUF")
    first, second = examine_models("portable", 1)
    assert (first.name, first.whole, first.file_bytes) == ("smollm2-135m", False, 4)
    assert (second.name, second.whole) == (str(tmp_path / "models" / "another.gguf"), True)


def test_a_plan_belongs_to_the_threads_and_instructions_it_was_measured_with(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "models" / "a.gguf")
    settings = Settings(draft=("suffix",), draft_tokens=None, speedup=1.5, date="2026-01-02")
    profile = Profile.of(Path(path), isa="portable", threads=1)
    assert profile is not None
    profile.write({"settings": settings.as_json()})
    assert [model.planned for model in examine_models("portable", 1)] == [("suffix",)]
    assert [model.planned for model in examine_models("portable", 2)] == [()]


def test_folders_tell_what_they_hold_and_whether_they_can_be_made(tmp_path: Path) -> None:
    (tmp_path / "models" / "deep").mkdir()
    (tmp_path / "models" / "deep" / "x").write_bytes(b"12345")
    models, profiles, histories = examine_folders()
    assert (models.purpose, models.exists, models.writable, models.used_bytes) == ("models", True, True, 5)
    assert (profiles.path, profiles.exists, profiles.writable) == (tmp_path / "profiles", False, True)
    assert histories.disk_free_bytes is not None


def test_a_folder_below_a_file_or_without_permission_is_not_writable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "profiles").write_text("a file", encoding="utf-8")
    assert [folder.writable for folder in examine_folders()] == [True, False, True]
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert not any(folder.writable for folder in examine_folders())
