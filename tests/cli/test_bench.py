from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.cli.conftest import Borrador
from tests.cli.scripted_llm import ROUNDS, STATS, ScriptedLLM, make_round


@pytest.fixture
def prompts(tmp_path: Path) -> str:
    path = tmp_path / "prompts.jsonl"
    entries = [{"id": f"{task}-{number}", "task": task, "turns": ["?"]} for task in ("qa", "code") for number in (1, 2)]
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    return str(path)


def test_last_line_of_json_has_every_number(borrador: Borrador, scripted: ScriptedLLM, prompts: str) -> None:
    result = borrador("bench", "--prompts", prompts, "--json", "-d", "lookup")
    entry = json.loads(result.out.splitlines()[-1])
    assert result.code == 0
    assert {name: entry[name] for name in ("prompts", "identical", "speedup", "acceptance")} == {
        "prompts": 4,
        "identical": 4,
        "speedup": 1.0,
        "acceptance": 0.8,
    }
    assert set(entry) - {"prompts", "identical", "speedup", "acceptance"} == {
        "plain_tok_s",
        "spec_tok_s",
        "tokens_per_pass",
        "prefill_tok_s",
        "per_task",
    }
    assert entry["per_task"]["qa"] == {"plain_tok_s": 100.0, "spec_tok_s": 100.0, "speedup": 1.0}


def test_table_has_a_row_for_each_task_and_one_for_all(borrador: Borrador, scripted: ScriptedLLM, prompts: str) -> None:
    result = borrador("bench", "--prompts", prompts, "-q")
    rows = [line.split() for line in result.out.splitlines()]
    assert ["qa", "2", "100.0", "100.0", "1.00x"] in rows
    assert ["all", "4", "100.0", "100.0", "1.00x"] in rows
    assert "4 of 4 answers identical" in result.out
    assert result.err == ""


def test_acceptance_is_a_dash_where_no_draft_token_was_tested(
    borrador: Borrador, scripted: ScriptedLLM, prompts: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    untested = replace(STATS, draft_tokens_proposed=0, draft_tokens_tested=0, draft_tokens_accepted=0)
    monkeypatch.setattr("tests.cli.scripted_llm.STATS", untested)
    result = borrador("bench", "--prompts", prompts, "--json")
    assert "tokens per pass, acceptance -\n" in result.out
    assert json.loads(result.out.splitlines()[-1])["acceptance"] is None


def test_options_limit_prompts_and_tokens(borrador: Borrador, scripted: ScriptedLLM, prompts: str) -> None:
    borrador("bench", "--prompts", prompts, "--per-task", "1", "--max-tokens", "16")
    assert [params.max_tokens for params in scripted.params] == [8, 8, 16, 16, 16, 16]


def test_changed_answer_ends_with_exit_code_5_and_names_the_token(
    borrador: Borrador, scripted: ScriptedLLM, prompts: str
) -> None:
    scripted.speculative_rounds = (ROUNDS[0], make_round(2, (2,), 1, 5))
    result = borrador("bench", "--prompts", prompts, "--json")
    assert result.code == 5
    assert json.loads(result.out.splitlines()[-1])["identical"] == 0
    assert "prompt qa-1 differs at token 2: plain 3, speculative 5" in result.err


def test_prompt_that_is_too_long_is_told_before_anything_is_measured(
    borrador: Borrador, scripted: ScriptedLLM, tmp_path: Path
) -> None:
    path = tmp_path / "prompts.jsonl"
    path.write_text('{"id": "short", "prompt": "?"}\n{"id": "long", "prompt": "' + "word " * 64 + '"}\n')
    result = borrador("bench", "--prompts", str(path))
    assert (result.code, result.out, scripted.prompts) == (2, "", [])
    assert "shorter than the context of 64 tokens, long has 64" in result.err


@pytest.mark.parametrize(
    "words",
    [
        ("--per-task", "0"),
        ("--prompts", "missing.jsonl"),
        ("--max-tokens", "0"),
        ("-n", "1"),
        ("--draft-tokens", "2", "-d", "none"),
    ],
)
def test_bad_option_is_a_usage_error(borrador: Borrador, scripted: ScriptedLLM, words: tuple[str, ...]) -> None:
    result = borrador("bench", *words)
    assert (result.code, result.out, scripted.prompts) == (2, "", [])
    assert [line.split(":")[0] for line in result.err.splitlines()] == ["error", "hint"]
