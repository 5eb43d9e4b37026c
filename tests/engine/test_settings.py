from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.tiny_gguf import write_tiny_model

from borrador import load
from borrador.config import EngineConfig
from borrador.engine.loading import open_parts
from borrador.engine.profile import Profile
from borrador.engine.settings import Settings, follow_plan, read_settings

FOUND = Settings(draft=("suffix", "recycle"), draft_tokens=3, speedup=1.25, date="2026-11-30")


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BORRADOR_PROFILES", str(tmp_path / "profiles"))
    path = tmp_path / "target.gguf"
    write_tiny_model(path, layers=1, seed=1)
    return path


def profile_of(model: Path, threads: int = 1) -> Profile:
    parts = open_parts(model, EngineConfig(threads=threads))
    parts.close()
    assert parts.profile is not None
    return parts.profile


def save(model: Path, settings: Settings = FOUND) -> None:
    profile_of(model).write({"settings": settings.as_json()})


def test_settings_are_read_as_they_were_written(tmp_path: Path) -> None:
    profile = Profile(tmp_path / "profile.json")
    assert read_settings(profile) is None
    for settings in (FOUND, replace(FOUND, draft_tokens=None), replace(FOUND, draft=("none",), speedup=1.0)):
        profile.write({"settings": settings.as_json()})
        assert read_settings(profile) == settings


@pytest.mark.parametrize(
    "damage",
    [
        {"draft": "suffix"},
        {"draft": []},
        {"draft": [""]},
        {"draft": ["suffix", 3]},
        {"draft": ["x" * 5000]},
        {"draft": ["suffix"] * 100},
        {"draft_tokens": 0},
        {"draft_tokens": 65},
        {"draft_tokens": 2.5},
        {"draft_tokens": True},
        {"draft_tokens": "4"},
        {"speedup": 0},
        {"speedup": float("inf")},
        {"speedup": float("nan")},
        {"speedup": "2"},
        {"speedup": True},
        {"date": "yesterday"},
        {"date": 20261130},
    ],
)
def test_damaged_settings_count_as_none(tmp_path: Path, damage: dict[str, Any]) -> None:
    path = tmp_path / "profile.json"
    path.write_text(json.dumps({"version": 1, "settings": {**FOUND.as_json(), **damage}}))
    assert read_settings(Profile(path)) is None


@pytest.mark.parametrize("settings", [[], None, "suffix", {}, {"draft": ["suffix"]}])
def test_settings_of_another_form_count_as_none(tmp_path: Path, settings: Any) -> None:
    path = tmp_path / "profile.json"
    path.write_text(json.dumps({"version": 1, "settings": settings}))
    assert read_settings(Profile(path)) is None


def test_a_plan_is_followed_where_no_drafts_are_named(model: Path) -> None:
    config = EngineConfig(threads=1, context=100)
    assert follow_plan(model, config) == (config, None)
    save(model)
    assert follow_plan(model, config) == (replace(config, draft=FOUND.draft, draft_tokens=3), FOUND)


@pytest.mark.parametrize(
    "named",
    [
        EngineConfig(threads=1, draft=("lookup",)),
        EngineConfig(threads=1, draft_tokens=2),
        EngineConfig(threads=1, draft_shortlist=40),
        EngineConfig(threads=1, draft_weights="file"),
        EngineConfig(threads=1, history="notes"),
        EngineConfig(threads=1, profile=False),
        EngineConfig(threads=2),
    ],
)
def test_what_is_named_wins_and_other_threads_have_plans_of_their_own(model: Path, named: EngineConfig) -> None:
    save(model)
    assert follow_plan(model, named) == (named, None)


def test_the_profile_is_found_without_loading_the_model(model: Path) -> None:
    parts = open_parts(model, EngineConfig())
    parts.close()
    assert parts.profile is not None
    parts.profile.write({"settings": replace(FOUND, draft_tokens=7).as_json()})
    assert follow_plan(model, EngineConfig())[0].draft_tokens == 7


def test_a_drafter_that_is_gone_is_left_out_with_a_message(
    model: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    small = tmp_path / "small.gguf"
    write_tiny_model(small, layers=1, seed=2)
    save(model, replace(FOUND, draft=("suffix", str(small))))
    config = EngineConfig(threads=1)
    assert follow_plan(model, config)[0].draft == ("suffix", str(small))
    small.unlink()
    with caplog.at_level(logging.WARNING, "borrador"):
        followed, settings = follow_plan(model, config)
    assert (followed.draft, followed.draft_tokens) == (("suffix",), None)
    assert settings == replace(FOUND, draft=("suffix",), draft_tokens=None)
    assert "small.gguf is not there any more" in caplog.text
    save(model, replace(FOUND, draft=(str(small), "a\0b", "gone-plugin")))
    assert follow_plan(model, config) == (config, None)


def test_load_follows_the_plan_unless_drafters_are_named(model: Path) -> None:
    def drafters(**options: Any) -> list[str]:
        with load(model, threads=1, **options) as llm:
            stats = llm.generate("abcabcabcabc").stats
            assert stats.target_passes > 0
            return list(llm._drafters)

    usual = drafters()
    save(model, replace(FOUND, draft=("lookup",)))
    assert usual != ["lookup"]
    assert drafters() == ["lookup"]
    assert drafters(draft="auto") == drafters(profile=False) == usual
    assert drafters(draft="none") == []
    save(model, replace(FOUND, draft=("none",), draft_tokens=None))
    assert drafters() == []
