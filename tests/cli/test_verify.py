from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Borrador, start
from tests.scripted import scripted_answer
from tests.verify.scripted import EXTENT, WrongModel, make_parts, right_model

from borrador.cli import verify
from borrador.draft.protocol import Drafter
from borrador.errors import VerificationError
from borrador.models.scripted import ScriptedModel
from borrador.sampling import acceptance

STEPS = ["greedy answers", "seeded answers", "logits", "sampling law"]


@pytest.fixture
def prompts(tmp_path: Path) -> str:
    path = tmp_path / "prompts.jsonl"
    path.write_text('{"id": "ab", "prompt": "abcabdabcab"}\n{"id": "no", "prompt": "nomnonomn"}\n')
    return str(path)


class Scripted:
    """The models behind `verify`, by number of threads."""

    def __init__(self) -> None:
        self.models: dict[int, ScriptedModel] = {}
        self.drafters: list[Drafter] | None = None
        self.opened: list[int] = []

    def find(self, *_: Any, **__: Any) -> Any:
        def open_parts(threads: int) -> Any:
            self.opened.append(threads)
            return make_parts(self.models.get(threads, right_model()), self.drafters)

        return open_parts


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Scripted:
    models = Scripted()
    monkeypatch.setattr(verify, "find_parts", models.find)
    monkeypatch.setattr(verify, "QUICK", EXTENT)
    return models


def quick(borrador: Borrador, prompts: str, *words: str) -> tuple[int, dict[str, Any], str, str]:
    result = borrador("verify", "--quick", "--json", "--threads", "2", "--prompts", prompts, *words)
    *table, last = result.out.splitlines()
    return result.code, json.loads(last), "\n".join(table), result.err


def test_a_right_model_passes_and_every_step_is_told(borrador: Borrador, scripted: Scripted, prompts: str) -> None:
    code, entry, table, err = quick(borrador, prompts)
    assert code == 0
    assert scripted.opened == [2, 1]
    assert (entry["passed"], entry["quick"], entry["threads"]) == (True, True, [2, 1])
    assert [step["name"] for step in entry["steps"]] == STEPS
    assert all(step["passed"] and step["finding"] is None for step in entry["steps"])
    for number, name in enumerate(STEPS, 1):
        assert f"{number} {name}" in table
        assert f"step {number} of 4: {name}, threads 1" in err
    assert "speculation changes nothing; compared 2 and 1 threads" in table


def test_quiet_says_nothing_but_the_report(borrador: Borrador, scripted: Scripted, prompts: str) -> None:
    assert quick(borrador, prompts, "-q")[3] == ""


@pytest.mark.parametrize(
    ("model", "threads", "step"),
    [
        (WrongModel(amount=100.0), 2, "step 1 (greedy answers)"),
        (WrongModel(amount=1e-6, trees_only=True, token=9), 2, "step 2 (seeded answers)"),
        (WrongModel(amount=1e-6, least_rows=24), 2, "step 3 (logits)"),
        (WrongModel(amount=100.0, least_rows=1), 1, "step 1 (greedy answers)"),
    ],
    ids=["answers", "logits of trees", "logits of long passes", "other threads"],
)
def test_a_wrong_model_ends_with_exit_code_5_and_the_first_difference(
    borrador: Borrador, scripted: Scripted, prompts: str, model: ScriptedModel, threads: int, step: str
) -> None:
    scripted.models[threads] = model
    code, entry, table, err = quick(borrador, prompts)
    failed = next(step for step in entry["steps"] if not step["passed"])
    finding = failed["finding"]
    assert code == VerificationError.exit_code == 5
    assert f"but {step} differs: {finding['where']}: position {finding['position']} is " in err
    for side in ("expected", "found"):
        text, logit = finding[side]["text"], finding[side]["logit"]
        assert f'{finding[side]["token"]} "{text}" (logit {logit:.9g})' in err
    assert f"threads {threads}" in finding["where"]
    assert "DIFFERS" in table
    assert "hint: This is a bug in borrador" in err


def test_a_broken_residual_ends_with_exit_code_5_and_names_the_step(
    borrador: Borrador, scripted: Scripted, prompts: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acceptance, "residual", lambda p, q: p)
    code, entry, _, err = quick(borrador, prompts)
    assert code == 5
    assert [step["passed"] for step in entry["steps"]] == [True, True, True, False]
    assert "but step 4 (sampling law) differs: ab, small, temperature 1, top-k 6, " in err


def test_a_residual_broken_on_purpose_is_found_from_the_command_line(prompts: str) -> None:
    process = start("verify", "--quick", "--break-residual", "--prompts", prompts)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 5
    assert b"DIFFERS" in out
    assert b"but step 4 (sampling law) differs: " in err
    assert b"hint: It was broken on purpose, with --break-residual." in err
    assert b"Traceback" not in err


def test_a_model_that_leaves_nothing_to_chance_is_no_proof(
    borrador: Borrador, scripted: Scripted, prompts: str
) -> None:
    scripted.models = {threads: scripted_answer("abcabdabcab", "abcdefghijkl" * 8) for threads in (1, 2)}
    scripted.drafters = []
    code, entry, table, err = quick(borrador, prompts)
    assert code == 1
    assert [step["conclusive"] for step in entry["steps"]] == [True, True, True, False]
    assert "cannot tell" in table
    assert "step 4 (sampling law) could not tell a wrong rule from a right one" in err


def test_drafters_that_draw_nothing_are_named(borrador: Borrador, scripted: Scripted, prompts: str) -> None:
    scripted.drafters = [make_parts().drafters[0]]
    _, entry, table, _ = quick(borrador, prompts)
    assert "sampling law: lookup draws nothing; rejection of certain chains and trees stands for it" in table
    assert len(entry["steps"][3]["remarks"]) == 2


@pytest.mark.parametrize(
    "words",
    [
        ("--prompts", "missing.jsonl"),
        ("--threads", "0"),
        ("--threads", "many"),
        ("--draft-tokens", "3"),
        ("-d", "none,lookup"),
        ("extra",),
    ],
)
def test_bad_input_is_a_usage_error_before_anything_is_done(
    borrador: Borrador, scripted: Scripted, words: tuple[str, ...]
) -> None:
    result = borrador("verify", *words)
    assert (result.code, result.out, scripted.opened) == (2, "", [])
    assert [line.split(":")[0] for line in result.err.splitlines()] == ["error", "hint"]


def test_an_empty_prompt_file_is_a_usage_error(borrador: Borrador, scripted: Scripted, tmp_path: Path) -> None:
    path = tmp_path / "empty.jsonl"
    path.write_text("\n")
    result = borrador("verify", "--prompts", str(path))
    assert (result.code, scripted.opened) == (2, [])
    assert "must hold at least one prompt" in result.err


@pytest.mark.parametrize("words", [("-m", "/nowhere.gguf"), ("-d", "/nowhere.gguf")])
def test_a_missing_model_is_told_at_once(borrador: Borrador, tmp_path: Path, words: tuple[str, ...]) -> None:
    result = borrador("verify", *words)
    assert (result.code, result.out) == (3, "")
    assert "no model file" in result.err


@pytest.mark.parametrize(
    ("chosen", "is_quick", "counts"),
    [
        (2, True, [2, 1]),
        (1, True, [1, 2]),
        (8, False, [8, 1, 2, 3]),
        (2, False, [2, 1]),
        (3, False, [3, 1, 2]),
        (1, False, [1, 2]),
    ],
)
def test_numbers_of_threads_to_compare(chosen: int, is_quick: bool, counts: list[int]) -> None:
    assert verify.thread_counts(chosen, quick=is_quick) == counts
    assert verify.thread_counts(None, quick=is_quick)[0] >= 1
