from __future__ import annotations

import builtins
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Borrador
from tests.doctor.machines import DRAFT, GOOD, TRIAL, machine
from tests.tiny_gguf import write_tiny_model

from borrador.cli import entry
from borrador.cli.doctor_card import readable
from borrador.doctor.facts import Facts


@pytest.fixture(autouse=True)
def _own_models_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BORRADOR_MODELS", str(tmp_path / "models"))


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> list[Facts]:
    """What the machine is said to be, in place of a look at this one."""
    facts = [GOOD]
    monkeypatch.setattr("borrador.doctor.examination.examine", lambda *_: facts[0])
    return facts


def test_json_holds_facts_obstacles_and_advice_of_this_machine(borrador: Borrador, tmp_path: Path) -> None:
    path = str(write_tiny_model(tmp_path / "tiny.gguf", context=128))
    result = borrador("doctor", "--json", "-m", path)
    report = json.loads(result.out)
    assert (result.code, result.err, report["can_run"], report["obstacles"]) == (0, "", True, [])
    assert report["trial"]["model"] == path
    assert report["speed"]["read_bandwidth"] > 0
    assert all(item.keys() == {"topic", "finding", "remedy"} for item in report["advice"])


def test_a_good_machine_needs_no_advice(borrador: Borrador, found: list[Facts]) -> None:
    result = borrador("doctor")
    assert (result.code, result.err) == (0, "")
    assert "AMD Ryzen 9; x86_64; AVX2, AVX-512, AVX-512 VNNI" in result.out
    assert result.out.endswith("Nothing that this command knows of would make it faster.\n")


def test_advice_is_numbered_and_no_failure(borrador: Borrador, found: list[Facts]) -> None:
    found[0] = machine(memory={"huge_pages": "never"}, cores={"physical": 4})
    result = borrador("doctor")
    assert result.code == 0
    assert "\n1. 8 threads run on 4 physical cores. Try --threads 4" in result.out
    assert "\n2. The system gives no 2 MiB pages" in result.out


def test_a_models_name_gets_no_capital(borrador: Borrador, found: list[Facts]) -> None:
    found[0] = replace(GOOD, models=(replace(DRAFT, whole=False),))
    assert "\n1. qwen2.5-coder-0.5b on this disk is not as long as it must be. Rep" in borrador("doctor").out


def test_what_stands_in_the_way_is_an_error_after_the_facts(
    borrador: Borrador, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BORRADOR_ISA", "sse2")
    result = borrador("doctor", "--json")
    assert (result.code, json.loads(result.out)["can_run"]) == (1, False)
    assert [line.split(":")[0] for line in result.err.splitlines()] == ["error", "hint"]
    assert "got 'sse2'" in result.err


def test_a_damaged_model_ends_with_1_and_its_error(borrador: Borrador, tmp_path: Path) -> None:
    path = tmp_path / "bad.gguf"
    path.write_bytes(b"GGUF")
    result = borrador("doctor", "-m", str(path))
    assert result.code == 1
    assert "instructions" in result.out
    assert "bad.gguf" in result.err


@pytest.mark.parametrize("name", ["qwen2.5-coder-1.5b", "nothing.gguf"])
def test_a_model_that_is_not_here_is_not_fetched(borrador: Borrador, name: str) -> None:
    result = borrador("doctor", "-m", name)
    assert (result.code, result.out) == (3, "")


def test_the_card_tells_what_was_tried_and_what_is_not_known() -> None:
    lines = dict(
        readable(Facts(processor=GOOD.processor, cores=GOOD.cores, memory=GOOD.memory, software=GOOD.software))
    )
    assert lines["models"] == "none on this disk"
    unknown = machine(memory={"total_bytes": None, "huge_pages": None}, processor={"forced": "neon"})
    lines = dict(readable(unknown))
    assert lines["memory"].startswith("not known here, free 30.0 GB")
    assert lines["huge pages"] == "not known here"
    assert lines["instructions"] == "none: BORRADOR_ISA is 'neon', and here are portable, avx2, avx512vnni"


def test_the_card_of_a_tried_model_compares_its_pass_with_the_limit() -> None:
    facts = Facts(processor=GOOD.processor, cores=GOOD.cores, memory=GOOD.memory, software=GOOD.software, trial=TRIAL)
    assert "a pass over one row takes 20.0 ms, the limit here is 17.0 ms" in dict(readable(facts))["tried"]


def test_an_engine_that_cannot_be_imported_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "borrador.cli.app", raising=False)
    real = builtins.__import__

    def fail(name: str, *rest: Any, **named: Any) -> Any:
        if name == "borrador.cli.app":
            raise ImportError("libstdc++.so.6: version `GLIBCXX_3.4.30' not found")
        return real(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", fail)
    assert entry.main(["doctor"]) == 1
    shown = capsys.readouterr()
    assert (shown.out, "GLIBCXX_3.4.30" in shown.err, shown.err.count("\n")) == ("", True, 2)
