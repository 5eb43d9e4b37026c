from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Borrador
from tests.cli.scripted_llm import ANSWER, ROUNDS, STATS, ScriptedLLM, make_round

from borrador.bench.record import Record

SPEEDS = {"plain_tok_s": 100.0, "spec_tok_s": 100.0, "speedup": 1.0, "median_speedup": 1.0, "interval": [1.0, 1.0]}


@pytest.fixture
def prompts(tmp_path: Path) -> str:
    path = tmp_path / "prompts.jsonl"
    entries = [
        {"id": f"{task}-{number}", "task": task, "turns": [f"{task} {number}?"]}
        for task in ("qa", "code")
        for number in (1, 2)
    ]
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    return str(path)


@pytest.fixture
def model(tmp_path: Path) -> str:
    path = tmp_path / "target.gguf"
    path.write_bytes(b"abc")
    return str(path)


def asked(scripted: ScriptedLLM) -> list[str]:
    """The questions of the benchmark's runs, without those that warm up."""
    return [prompt[0]["content"] for prompt in scripted.prompts[2:]]


def test_last_line_of_json_has_every_number(borrador: Borrador, scripted: ScriptedLLM, prompts: str) -> None:
    result = borrador("bench", "--prompts", prompts, "--json", "-d", "lookup")
    entry = json.loads(result.out.splitlines()[-1])
    assert result.code == 0
    assert {name: entry[name] for name in SPEEDS} == SPEEDS
    assert (entry["prompts"], entry["identical"], entry["acceptance"]) == (4, 4, 0.8)
    assert entry["end_to_end"] == {**SPEEDS, "plain_tok_s": 63.636, "spec_tok_s": 63.636}
    assert entry["drafters"] == [
        {"drafter": "lookup", "rounds": 8, "proposed": 24, "tested": [8, 8, 4], "accepted": [8, 8, 0]}
    ]
    assert entry["worst"] == {"prompt": "qa-1", "task": "qa", "speedup": 1.0}
    assert set(entry["time"]) == {"plain", "speculative"}
    assert set(entry) - set(SPEEDS) == {
        "tokens_per_pass",
        "prefill_tok_s",
        "prompts",
        "identical",
        "acceptance",
        "end_to_end",
        "drafters",
        "time",
        "worst",
        "first_divergence",
        "per_task",
    }
    assert {name: entry["per_task"]["qa"][name] for name in SPEEDS} == SPEEDS


def test_table_has_a_row_for_each_task_and_one_for_all(borrador: Borrador, scripted: ScriptedLLM, prompts: str) -> None:
    result = borrador("bench", "--prompts", prompts)
    rows = [line.split() for line in result.out.splitlines()]
    assert ["qa", "2", "100.0", "100.0", "1.00x", "1.00x", "1.00-1.00", "1.00x"] in rows
    assert ["all", "4", "100.0", "100.0", "1.00x", "1.00x", "1.00-1.00", "1.00x"] in rows
    assert "lookup: 8 drafts, accepted by position 100% 100% 0%\n" in result.out
    assert "worst prompt: qa-1 (qa), 1.00x\n" in result.out
    assert "4 of 4 answers identical" in result.out
    assert result.err == ""


def test_one_prompt_has_no_interval(borrador: Borrador, scripted: ScriptedLLM, tmp_path: Path) -> None:
    path = tmp_path / "one.txt"
    path.write_text("Why?")
    result = borrador("bench", "--prompts", str(path), "--json")
    assert ["all", "1", "100.0", "100.0", "1.00x", "1.00x", "-"] in [
        line.split()[:7] for line in result.out.splitlines()
    ]
    assert json.loads(result.out.splitlines()[-1])["interval"] is None


def test_acceptance_is_a_dash_where_no_draft_token_was_tested(
    borrador: Borrador, scripted: ScriptedLLM, prompts: str
) -> None:
    scripted.rounds = (ROUNDS[0], make_round(2, (), 0, 3))
    result = borrador("bench", "--prompts", prompts, "--json")
    assert "tokens per pass, acceptance -\n" in result.out
    assert json.loads(result.out.splitlines()[-1])["acceptance"] is None


def test_options_limit_prompts_and_tokens(borrador: Borrador, scripted: ScriptedLLM, prompts: str) -> None:
    borrador("bench", "--prompts", prompts, "--per-task", "1", "--max-tokens", "16")
    assert [params.max_tokens for params in scripted.params] == [8, 8, 16, 16, 16, 16]


def test_repeats_answer_all_prompts_again_with_the_other_way_first(
    borrador: Borrador, scripted: ScriptedLLM, prompts: str
) -> None:
    result = borrador("bench", "--prompts", prompts, "--per-task", "1", "--repeats", "2")
    assert asked(scripted) == [question for question in ("qa 1?", "code 1?") * 2 for _ in range(2)]
    assert [speculate for speculate, _ in scripted.drafting[2:]] == [False, True, True, False, True, False, False, True]
    assert "each prompt was answered 2 times" in result.out
    assert "2 of 2 answers identical" in result.out


def test_every_run_begins_with_empty_caches(borrador: Borrador, scripted: ScriptedLLM, prompts: str) -> None:
    borrador("bench", "--prompts", prompts)
    assert scripted.forgotten == len(scripted.prompts)


def test_drafters_carry_over_what_they_learnt_unless_told_otherwise(
    borrador: Borrador, scripted: ScriptedLLM, prompts: str
) -> None:
    borrador("bench", "--prompts", prompts)
    assert scripted.planner.restored == []


def test_cold_start_forgets_before_every_speculative_run(
    borrador: Borrador, scripted: ScriptedLLM, prompts: str
) -> None:
    result = borrador("bench", "--prompts", prompts, "--start", "cold")
    assert scripted.planner.restored == [{}] * 5
    assert "cold start: drafters had learnt nothing" in result.out


def test_warm_start_learns_from_prompts_that_are_not_measured(
    borrador: Borrador, scripted: ScriptedLLM, prompts: str, model: str, tmp_path: Path
) -> None:
    saved = tmp_path / "a.json"
    result = borrador("bench", "--prompts", prompts, "--start", "warm", "-m", model, "--save", str(saved), "--json")
    assert asked(scripted) == ["qa 1?", "code 1?", "qa 2?", "qa 2?", "code 2?", "code 2?"]
    assert scripted.planner.restored == [{"learnt": True}] * 2
    assert json.loads(result.out.splitlines()[-1])["prompts"] == 2
    assert "learnt from 2 other prompts, not measured here" in result.out
    assert Record.read(saved).settings.warm_up_prompts == ("qa-1", "code-1")


def test_draws_without_a_seed_are_not_compared(borrador: Borrador, scripted: ScriptedLLM, prompts: str) -> None:
    scripted.speculative_rounds = (ROUNDS[0], make_round(2, (2,), 1, 5))
    result = borrador("bench", "--prompts", prompts, "--temp", "1", "--json")
    assert (result.code, json.loads(result.out.splitlines()[-1])["identical"]) == (0, None)
    assert "answers are draws without a seed: not compared" in result.out
    assert {params.temperature for params in scripted.params} == {1.0}


@pytest.mark.parametrize("words", [(), ("--temp", "1", "--seed", "7")])
def test_changed_answer_ends_with_exit_code_5_and_names_the_token(
    borrador: Borrador, scripted: ScriptedLLM, prompts: str, model: str, tmp_path: Path, words: tuple[str, ...]
) -> None:
    scripted.speculative_rounds = (ROUNDS[0], make_round(2, (2,), 1, 5))
    saved = tmp_path / "a.json"
    result = borrador("bench", "--prompts", prompts, "--json", "-m", model, "--save", str(saved), *words)
    entry = json.loads(result.out.splitlines()[-1])
    assert result.code == 5
    assert (entry["identical"], entry["first_divergence"]["index"]) == (0, 2)
    assert "prompt qa-1 differs at token 2: plain 3, speculative 5" in result.err
    assert Record.read(saved).summary.first_divergence is not None


def test_saved_record_has_every_run_and_the_numbers_that_are_printed(
    borrador: Borrador, scripted: ScriptedLLM, prompts: str, model: str, tmp_path: Path
) -> None:
    saved = tmp_path / "a.json"
    draft = tmp_path / "draft.gguf"
    draft.write_bytes(b"d")
    words = ("-m", model, "-d", f"auto,{draft}", "--save", str(saved), "--json", "--repeats", "2", "-n", "9")
    result = borrador("bench", "--prompts", prompts, "--draft-weights", "file", *words)
    record = Record.read(saved)
    assert (record.model.name, record.model.bytes) == ("target.gguf", 3)
    assert record.model.sha256 == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert [each.name for each in record.draft_models] == ["draft.gguf"]
    assert record.settings.draft == ("suffix", "recycle", "draft.gguf")
    assert record.settings.draft_weights == "file"
    assert (record.settings.max_tokens, record.settings.repeats, record.settings.prompts) == (9, 2, "prompts.jsonl")
    assert [(pair.prompt, pair.repeat) for pair in record.pairs[::3]] == [("qa-1", 0), ("code-2", 0), ("code-1", 1)]
    assert record.pairs[0].speculative.text == ANSWER
    assert round(record.summary.total.decode.speedup, 4) == json.loads(result.out.splitlines()[-1])["speedup"]
    assert str(tmp_path) not in saved.read_text()
    assert f"saved in {saved}" in result.err


@pytest.mark.parametrize("name", ["a.txt", "none/a.json", "folder.json"])
def test_place_for_the_record_is_checked_before_anything_is_measured(
    borrador: Borrador, scripted: ScriptedLLM, prompts: str, tmp_path: Path, name: str
) -> None:
    (tmp_path / "folder.json").mkdir()
    result = borrador("bench", "--prompts", prompts, "--save", str(tmp_path / name))
    assert (result.code, result.out, scripted.prompts) == (2, "", [])
    assert "--save" in result.err


def test_interruption_prints_what_was_measured_and_saves_nothing(
    borrador: Borrador, scripted: ScriptedLLM, prompts: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = scripted.stream

    def interrupted(prompt: Any, params: Any, **options: Any) -> Any:
        if len(scripted.prompts) == 7:
            raise KeyboardInterrupt
        return stream(prompt, params, **options)

    monkeypatch.setattr(scripted, "stream", interrupted)
    saved = tmp_path / "a.json"
    result = borrador("bench", "--prompts", prompts, "--save", str(saved), "--json")
    assert result.code == 130
    assert "interrupted after 2 of 4 pairs; nothing is saved" in result.out
    assert "{" not in result.out
    assert not saved.exists()


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
        ("--repeats", "0"),
        ("--repeats", "two"),
        ("--start", "tepid"),
        ("--prompts", "missing.jsonl"),
        ("--max-tokens", "0"),
        ("-n", "1"),
        ("--draft-tokens", "2", "-d", "none"),
        ("--temp", "-1"),
        ("--seed", "7"),
        ("--start", "cold", "--history", "mine"),
        ("--start", "warm", "--profile"),
        ("--history", "mine", "--repeats", "2"),
        ("compare",),
        ("compare", "a.json"),
        ("compare", "a.json", "b.json"),
        ("--repeats", "2", "compare", "a.json", "b.json"),
        ("contrast",),
    ],
)
def test_bad_option_is_a_usage_error(borrador: Borrador, scripted: ScriptedLLM, words: Sequence[str]) -> None:
    result = borrador("bench", *words)
    assert (result.code, result.out, scripted.prompts) == (2, "", [])
    assert [line.split(":")[0] for line in result.err.splitlines()] == ["error", "hint"]


def test_history_that_may_know_the_answers_is_told(borrador: Borrador, scripted: ScriptedLLM, prompts: str) -> None:
    result = borrador("bench", "--prompts", prompts, "--history", "mine")
    assert "history mine may hold answers to these very prompts" in result.err


def test_warm_start_needs_two_prompts(borrador: Borrador, scripted: ScriptedLLM, tmp_path: Path) -> None:
    path = tmp_path / "one.txt"
    path.write_text("Why?")
    result = borrador("bench", "--prompts", str(path), "--start", "warm")
    assert (result.code, scripted.prompts) == (2, [])
    assert "a warm start needs at least 2 prompts" in result.err


def test_shorter_answers_of_draws_are_measured_by_their_own_tokens(
    borrador: Borrador, scripted: ScriptedLLM, prompts: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.cli.scripted_llm.STATS", replace(STATS, decode_s=0.0))
    result = borrador("bench", "--prompts", prompts)
    assert ["all", "4", "-", "-", "-", "-", "-"] in [line.split() for line in result.out.splitlines()]
