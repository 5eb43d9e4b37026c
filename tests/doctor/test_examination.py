from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.tiny_gguf import write_tiny_model

from borrador.doctor.examination import examine


@pytest.fixture(autouse=True)
def _folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("models", "profiles", "history"):
        monkeypatch.setenv(f"BORRADOR_{name.upper()}", str(tmp_path / name))


def test_a_machine_is_measured_without_any_model() -> None:
    facts = examine()
    assert facts.speed is not None
    assert facts.speed.read_bandwidth > 1e8
    assert facts.speed.integer_peak > 1e8
    assert (facts.models, facts.trial, facts.obstacle) == ((), None, None)
    assert json.loads(json.dumps(facts.as_json()))["processor"]["used"] == facts.processor.used


def test_a_model_is_loaded_and_its_passes_timed(tmp_path: Path) -> None:
    path = Path(write_tiny_model(tmp_path / "tiny.gguf", context=128))
    facts = examine(str(path), path)
    assert facts.trial is not None
    assert facts.trial.pass_s > 0
    assert facts.trial.limit_s > 0
    assert (facts.trial.model, facts.trial.profile) == (str(path), False)
    assert [model.path for model in facts.models] == [path]


def test_a_model_that_cannot_be_loaded_is_an_obstacle(tmp_path: Path) -> None:
    path = tmp_path / "bad.gguf"
    path.write_bytes(b"GGUF and nothing else")
    facts = examine(str(path), path)
    assert facts.trial is None
    assert facts.obstacle is not None
    assert "bad.gguf" in facts.obstacle


def test_a_model_of_fewer_tokens_than_a_trial_wants_is_tried_too(tmp_path: Path) -> None:
    path = Path(write_tiny_model(tmp_path / "tiny.gguf", context=16))
    assert examine(str(path), path).trial is not None
