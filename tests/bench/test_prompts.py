from __future__ import annotations

from pathlib import Path

import pytest

from borrador.bench.prompts import load_prompts
from borrador.errors import UsageError


def test_default_set_covers_six_tasks_with_four_prompts_each() -> None:
    prompts = load_prompts()
    tasks = [prompt.task for prompt in prompts]
    assert {task: tasks.count(task) for task in tasks} == dict.fromkeys(
        ("chat", "qa", "summary", "code", "translation", "editing"), 4
    )


def test_first_turn_is_asked_and_prompt_where_there_are_no_turns(tmp_path: Path) -> None:
    path = tmp_path / "prompts.jsonl"
    path.write_text('{"id": "a", "task": "qa", "turns": ["One", "Two"]}\n\n{"id": 7, "prompt": "Three"}\n')
    assert [(prompt.id, prompt.task, prompt.text) for prompt in load_prompts(path)] == [
        ("a", "qa", "One"),
        ("7", "all", "Three"),
    ]


def test_per_task_keeps_the_first_of_each_task_in_order(tmp_path: Path) -> None:
    path = tmp_path / "prompts.jsonl"
    tasks = ("qa", "code", "qa", "code", "code")
    path.write_text(
        "".join(f'{{"id": {number}, "task": "{task}", "prompt": "?"}}\n' for number, task in enumerate(tasks))
    )
    assert [prompt.id for prompt in load_prompts(path, per_task=1)] == ["0", "1"]
    assert [prompt.id for prompt in load_prompts(path, per_task=2)] == ["0", "1", "2", "3"]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "at least one prompt"),
        (b"\n \n", "at least one prompt"),
        (b"nonsense\n", "line 1 of"),
        (b'{"prompt": "a"}\n[1]\n', "line 2 of"),
        (b'{"id": "a"}\n', "neither turns nor prompt"),
        (b'{"turns": [3]}\n', "neither turns nor prompt"),
        (b'{"prompt": " "}\n', "neither turns nor prompt"),
        (b'{"id": 1, "prompt": "a"}\n{"id": 1, "prompt": "b"}\n', "must be unique"),
        (b"\xff", "must be UTF-8"),
        (b"[" * 100_000, "line 1 of"),
    ],
)
def test_bad_prompt_file_is_one_sentence(tmp_path: Path, content: bytes, sentence: str) -> None:
    path = tmp_path / "prompts.jsonl"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=sentence):
        load_prompts(path)


def test_missing_prompt_file_and_directory_are_usage_errors(tmp_path: Path) -> None:
    for path in (tmp_path / "none.jsonl", tmp_path):
        with pytest.raises(UsageError, match="cannot be read"):
            load_prompts(path)


def test_a_prompt_file_is_bounded_and_needs_a_name() -> None:
    with pytest.raises(UsageError, match="at most 67108864 bytes, /dev/zero holds more"):
        load_prompts(Path("/dev/zero"))
    with pytest.raises(UsageError, match="it is no file name"):
        load_prompts(Path("a\0b"))


def test_lines_of_a_prompt_file_may_end_as_on_windows(tmp_path: Path) -> None:
    path = tmp_path / "prompts.jsonl"
    path.write_bytes(b'{"prompt": "One"}\r\n\r\n{"prompt": "Two"}\r\n')
    assert [prompt.text for prompt in load_prompts(path)] == ["One", "Two"]
