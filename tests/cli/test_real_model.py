"""The commands as a user meets them: a process each, the default model, nothing scripted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.conftest import start

pytestmark = pytest.mark.real_model

COPY = "Repeat word for word:\nA draft is cheap to write.\nA draft is quick to check.\nA draft is cheap to write."


@pytest.fixture(autouse=True)
def _fetched(model_path: Callable[[str], Path]) -> None:
    model_path("smollm2-135m")


def borrador(*words: str, stdin: bytes = b"") -> tuple[int, str, str]:
    process = start(*words, module="borrador.cli.entry", stdin=subprocess.PIPE)
    out, err = process.communicate(stdin, timeout=300)
    return process.returncode, out.decode(), err.decode()


def test_speculation_writes_what_plain_decoding_writes() -> None:
    plain = borrador("run", "-q", "-n", "48", "-d", "none", COPY)
    lookup = borrador("run", "-q", "-n", "48", "-d", "lookup", "--draft-tokens", "5", COPY)
    assert plain[0] == 0
    assert plain[1]
    assert lookup == plain


@pytest.mark.parametrize("words", [("--temp", "0.8", "--seed", "11"), ("--temp", "1.2", "--top-k", "9", "--seed", "3")])
def test_a_seed_gives_one_text_with_and_without_drafts(words: tuple[str, ...]) -> None:
    plain = borrador("run", "-q", "-n", "48", "-d", "none", *words, COPY)
    lookup = borrador("run", "-q", "-n", "48", "-d", "lookup", "--draft-tokens", "5", *words, COPY)
    assert plain[0] == 0
    assert lookup == plain


def test_trace_shows_accepted_and_corrected_tokens() -> None:
    code, _, trace = borrador("run", "--trace", "-n", "64", "-d", "lookup", "--draft-tokens", "5", COPY)
    rounds = [line for line in trace.splitlines() if line.startswith("round")]
    assert code == 0
    assert any("✓" in line for line in rounds)
    assert any("✗" in line and "→" in line for line in rounds)


def test_json_and_stop_string() -> None:
    code, out, _ = borrador("run", "--json", "--raw", "-n", "32", "--stop", ",", stdin=b"One, two, three")
    entry = json.loads(out)
    assert code == 0
    assert "," not in entry["text"]
    assert entry["stats"]["completion_tokens"] == len(entry["token_ids"])


def test_prompt_longer_than_the_context_is_a_usage_error() -> None:
    code, out, err = borrador("run", "--context", "32", "word " * 64)
    assert (code, out) == (2, "")
    assert [line.split(":")[0] for line in err.splitlines()] == ["error", "hint"]
    assert "32" in err


def test_context_beyond_the_model_is_a_usage_error() -> None:
    code, _, err = borrador("run", "--context", "1m", "Hello")
    assert code == 2
    assert borrador("run", "--context", "64k", "Hello")[0] == 2
    assert "Traceback" not in err


def test_interrupt_in_the_middle_of_an_answer_keeps_what_was_written() -> None:
    process = start("run", "-n", "2k", "Write a long story about the sea.", module="borrador.cli.entry")
    assert process.stdout is not None
    first = os.read(process.stdout.fileno(), 4096)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert (first + out).decode().strip()
    assert b"tokens per pass" in err
    assert b"Traceback" not in err


def test_bench_finds_every_answer_identical() -> None:
    code, out, _ = borrador("bench", "--per-task", "1", "--max-tokens", "24", "-d", "lookup", "--json", "-q")
    entry = json.loads(out.splitlines()[-1])
    assert code == 0
    assert (entry["prompts"], entry["identical"]) == (6, 6)
    assert entry["plain_tok_s"] > 0
    assert entry["prefill_tok_s"] > entry["plain_tok_s"]


def test_verify_finds_that_speculation_changes_nothing() -> None:
    code, out, err = borrador("verify", "--quick", "-d", "lookup", "--json")
    *_, last = out.splitlines()
    entry = json.loads(last)
    assert (code, entry["passed"]) == (0, True)
    answers, seeded, logits, law = entry["steps"]
    for step in (answers, seeded):
        assert step["drafters"]["rehearsed tree"]["accepted"] > 0
    assert answers["drafters"]["lookup"]["accepted"] > 0
    assert logits["vocabulary"] == 49152
    assert law["draws"] == 20_000
    assert law["controls_noticed"] == len(law["controls"])
    assert "step 4 of 4: sampling law" in err


def test_rows_measures_every_size() -> None:
    code, out, _ = borrador("rows", "--json", "--repeats", "15", "-q")
    entry = json.loads(out.splitlines()[-1])
    assert code == 0
    assert list(entry["rows_ms"]) == ["1", "2", "3", "4", "5", "6", "8", "10", "12", "16", "24", "32"]
    assert entry["read_bandwidth_bytes_s"] > 1e9
    assert entry["weights_bytes"] > 9e7
