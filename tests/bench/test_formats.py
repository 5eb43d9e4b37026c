from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from borrador.bench.formats import CODE_INSTRUCTION, BenchPrompt, read_prompts
from borrador.bench.score.program import Problem
from borrador.errors import UsageError

BEGINNING = 'def two():\n    """Return 2."""\n'
TEST = "def check(candidate):\n    assert candidate() == 2\n"
HUMANEVAL = {
    "task_id": "HumanEval/7",
    "prompt": BEGINNING,
    "entry_point": "two",
    "canonical_solution": "    return 2\n",
    "test": TEST,
}


def read(folder: Path, content: bytes, name: str = "file.data") -> list[BenchPrompt]:
    path = folder / name
    path.write_bytes(content)
    return list(read_prompts(path))


def test_lines_of_our_own(tmp_path: Path) -> None:
    content = b'{"id": "a", "task": "qa", "turns": ["One", "Two"]}\n\n{"id": 7, "prompt": "Three"}\n{"prompt": "Four"}'
    assert read(tmp_path, content) == [
        BenchPrompt("a", "qa", "One"),
        BenchPrompt("7", "all", "Three"),
        BenchPrompt("4", "all", "Four"),
    ]


def test_names_that_could_not_be_shown_or_saved_are_made_showable(tmp_path: Path) -> None:
    content = b'{"id": "a\\ud800", "task": "q\\u001b[31m", "prompt": "One"}'
    assert read(tmp_path, content) == [BenchPrompt("a?", "q?[31m", "One")]
    assert read(tmp_path, b"One", "a\x1b\udcff.txt") == [BenchPrompt("a??-1", "a??", "One")]


def test_questions_of_spec_bench(tmp_path: Path) -> None:
    entry = {"question_id": 81, "category": "writing", "turns": ["Compose a post.", "Rewrite it."], "reference": []}
    assert read(tmp_path, json.dumps(entry).encode()) == [BenchPrompt("81", "writing", "Compose a post.")]


def test_problems_of_humaneval_ask_for_the_whole_function_and_keep_their_tests(tmp_path: Path) -> None:
    (prompt,) = read(tmp_path, json.dumps(HUMANEVAL).encode())
    assert (prompt.id, prompt.task) == ("HumanEval/7", "humaneval")
    assert prompt.text == f'{CODE_INSTRUCTION}\n\n```python\ndef two():\n    """Return 2."""\n```'
    assert prompt.check == Problem(id="HumanEval/7", prompt=BEGINNING, test=TEST, entry_point="two")


def test_problem_without_tests_can_be_asked_and_not_scored(tmp_path: Path) -> None:
    (prompt,) = read(tmp_path, json.dumps({"task_id": "seven", "prompt": BEGINNING}).encode())
    assert (prompt.id, prompt.task, prompt.check) == ("seven", "code", None)


def test_paragraphs_of_plain_text(tmp_path: Path) -> None:
    content = "\n\n[1] Uno,\ndos\n \t\n\r\nTres: {é}\r\n\r\n\n".encode()
    assert read(tmp_path, content, "spanish.txt") == [
        BenchPrompt("spanish-1", "spanish", "[1] Uno,\ndos"),
        BenchPrompt("spanish-2", "spanish", "Tres: {é}"),
    ]


def test_content_decides_and_not_the_name(tmp_path: Path) -> None:
    assert read(tmp_path, b'\xef\xbb\xbf{"prompt": "One"}\r\n', "a.txt") == [BenchPrompt("1", "all", "One")]
    assert read(tmp_path, b"One", "b.jsonl") == [BenchPrompt("b-1", "b", "One")]


def test_file_may_be_compressed(tmp_path: Path) -> None:
    assert read(tmp_path, gzip.compress(b"One\n\nTwo"), "a.txt.gz") == [
        BenchPrompt("a-1", "a", "One"),
        BenchPrompt("a-2", "a", "Two"),
    ]
    (prompt,) = read(tmp_path, gzip.compress(json.dumps(HUMANEVAL).encode()), "HumanEval.jsonl.gz")
    assert prompt.check is not None


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b'{"prompt": "a"}\n[1]\n', "line 2 of .* is not a JSON object"),
        (b'{"prompt": "a"}\nnonsense\n', "line 2 of .* is not JSON"),
        (b'[{"prompt": "a"}]\n', "line 1 of .* is not a JSON object"),
        (b'{"question": "a", "answer": 1}\n', "line 1 of .*; its keys are question, answer"),
        (b"{}\n", "its keys are none"),
        (b'{"turns": [3]}\n', "neither turns nor prompt"),
        (b'{"turns": []}\n', "neither turns nor prompt"),
        (b'{"prompt": " "}\n', "neither turns nor prompt"),
        (b"\xff", "must be UTF-8"),
        (b"{" * 100_000, "line 1 of"),
        (b"[" * 100_000, "line 1 of"),
        (gzip.compress(b"One")[:-9], "is damaged"),
        (gzip.compress(b"One")[:12] + b"\xff" * 9, "is damaged"),
        (gzip.compress(b"\n" * (64 * 2**20 + 1)), "at most 67108864 bytes"),
        (json.dumps({**HUMANEVAL, "entry_point": "a b"}).encode(), "function's name"),
    ],
)
def test_bad_prompt_file_is_one_sentence(tmp_path: Path, content: bytes, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence) as caught:
        read(tmp_path, content)
    assert "\n" not in str(caught.value)
    assert caught.value.hint


def test_missing_prompt_file_and_directory_are_usage_errors(tmp_path: Path) -> None:
    for path in (tmp_path / "none.jsonl", tmp_path):
        with pytest.raises(UsageError, match="cannot be read"):
            read_prompts(path)


def test_a_prompt_file_is_bounded_and_needs_a_name() -> None:
    with pytest.raises(UsageError, match="at most 67108864 bytes, /dev/zero holds more"):
        read_prompts(Path("/dev/zero"))
    with pytest.raises(UsageError, match="it is not a file name"):
        read_prompts(Path("a\0b"))
