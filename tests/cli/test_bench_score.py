from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from tests.bench.page.reading import cells, read_page
from tests.cli import scripted_llm
from tests.cli.conftest import Borrador
from tests.cli.scripted_llm import ScriptedLLM, make_round

from borrador.bench.record import Record

RIGHT = "```\ndef double(x):\n    return 2 * x\n```"
WRONG = "```\ndef double(x):\n    return 3 * x\n```"
TEST = "def check(candidate):\n    assert candidate(2) == 4\n"


@pytest.fixture
def problems(tmp_path: Path) -> str:
    path = tmp_path / "problems.jsonl"
    entries = [
        {"task_id": f"Own/{number}", "prompt": "def double(x):\n", "entry_point": "double", "test": test}
        for number, test in enumerate((TEST, TEST.replace("== 4", "== 5")))
    ]
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    return str(path)


@pytest.fixture
def coder(scripted: ScriptedLLM, monkeypatch: pytest.MonkeyPatch) -> ScriptedLLM:
    """A model whose token 1 is the right function, and token 2 a wrong one."""
    monkeypatch.setattr(scripted_llm, "PIECES", ("<end>", RIGHT, WRONG, "\n"))
    scripted.rounds = (make_round(1, (), 0, 1), make_round(2, (3,), 1, 3))
    return scripted


def test_answers_are_scored_after_they_were_measured(borrador: Borrador, coder: ScriptedLLM, problems: str) -> None:
    result = borrador("bench", "--score", "--prompts", problems, "--json", "-d", "lookup")
    rows = [line.split() for line in result.out.splitlines()]
    assert result.code == 0
    assert ["Own/0", "passed", "passed"] in rows
    assert ["Own/1", "failed", "failed", "AssertionError"] in rows
    assert "pass@1: 1 of 2 written plainly, 1 of 2 with speculation\n" in result.out
    assert "sandbox: limits of time and memory" in result.out
    entry = json.loads(result.out.splitlines()[-1])
    assert entry["prompts"] == 2
    assert (entry["score"]["plain_pass_at_1"], entry["score"]["speculative_pass_at_1"]) == (0.5, 0.5)
    assert [each["plain"] for each in entry["score"]["per_problem"]] == ["passed", "failed"]


def test_without_score_nothing_is_run(borrador: Borrador, coder: ScriptedLLM, problems: str) -> None:
    result = borrador("bench", "--prompts", problems, "--json")
    assert "score" not in json.loads(result.out.splitlines()[-1])
    assert "pass@1" not in result.out


def test_another_answer_with_speculation_is_scored_apart(borrador: Borrador, coder: ScriptedLLM, problems: str) -> None:
    coder.speculative_rounds = (make_round(1, (), 0, 2), make_round(2, (3,), 1, 3))
    result = borrador("bench", "--score", "--prompts", problems, "-d", "lookup")
    assert result.code == 5
    assert "pass@1: 1 of 2 written plainly, 0 of 2 with speculation\n" in result.out


def test_the_record_and_its_page_have_the_score(
    borrador: Borrador, coder: ScriptedLLM, problems: str, tmp_path: Path
) -> None:
    model, record, page = (tmp_path / name for name in ("m.gguf", "r.json", "r.html"))
    model.write_bytes(b"abc")
    words = ("bench", "--score", "-m", str(model), "-d", "lookup", "--prompts", problems, "--repeats", "2")
    assert borrador(*words, "--save", str(record), "--report", str(page), "-q").code == 0
    found = Record.read(record)
    assert found.score is not None
    assert (found.score.plain_passed, found.score.problems) == (1, 2)
    assert Record.from_json(found.to_json()) == found
    shown = read_page(page.read_text("utf-8"))
    assert "pass@1: 1 of 2 written plainly, 1 of 2 with speculation." in shown.text
    rows = [row for table in shown.all("table") for row in cells(table)]
    assert ["Own/1", "failed", "failed", "AssertionError"] in rows


def test_our_own_problems_and_longer_answers_are_the_default(
    borrador: Borrador, coder: ScriptedLLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ScriptedLLM, "context_length", 128)
    result = borrador("bench", "--score", "-q", "-d", "lookup")
    assert result.code == 0
    assert "pass@1: 0 of 10 written plainly, 0 of 10 with speculation\n" in result.out
    assert {params.max_tokens for params in coder.params[2:]} == {512}
    assert "tidy_spaces" in coder.prompts[2][-1]["content"]


def test_the_length_that_is_given_counts(borrador: Borrador, coder: ScriptedLLM, problems: str) -> None:
    borrador("bench", "--score", "--prompts", problems, "-n", "16")
    assert {params.max_tokens for params in coder.params[2:]} == {16}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--prompts", "{untested}"), "--score needs prompts with tests, and a of {untested} has none"),
        (("--url", "http://127.0.0.1:9"), "--url uses a server as it is, and --score is for a model here"),
    ],
)
def test_prompts_without_tests_and_servers_are_refused_before_anything_is_measured(
    borrador: Borrador, coder: ScriptedLLM, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    untested = tmp_path / "untested.jsonl"
    untested.write_text('{"id": "a", "turns": ["?"]}\n')
    result = borrador("bench", "--score", *(word.format(untested=untested) for word in words))
    assert (result.code, result.out) == (2, "")
    assert said.format(untested=untested) in result.err
    assert coder.prompts == []


def test_a_system_without_a_sandbox_is_refused_by_name(
    borrador: Borrador, coder: ScriptedLLM, problems: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("borrador.bench.score.sandbox.os", _Windows())
    monkeypatch.setattr(sys, "platform", "win32")
    result = borrador("bench", "--score", "--prompts", problems)
    assert result.code == 1
    assert "its sandbox needs Linux or macOS, this is win32" in result.err
    assert coder.prompts == []


class _Windows:
    name = "nt"

    def __getattr__(self, name: str) -> object:
        return getattr(os, name)
