from __future__ import annotations

from pathlib import Path

import pytest

from borrador.bench.prompts import BenchPrompt, Halves, load_prompts
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


def test_file_without_prompts_or_with_one_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "prompts.jsonl"
    for content, sentence in (
        ("", "at least one prompt"),
        ("\n \n", "at least one prompt"),
        ('{"id": 1, "prompt": "a"}\n{"id": 1, "prompt": "b"}\n', "must be unique"),
    ):
        path.write_text(content)
        with pytest.raises(UsageError, match=sentence):
            load_prompts(path)


def test_halves_take_turns_within_a_task() -> None:
    prompts = [BenchPrompt(str(number), task, "?") for number, task in enumerate("aaabbbcd")]
    halves = Halves.of(prompts)
    assert ["".join(each.task for each in half) for half in (halves.known, halves.unseen)] == ["aabc", "abbd"]
    assert set(halves.known).isdisjoint(halves.unseen)


def test_one_prompt_has_no_halves() -> None:
    with pytest.raises(UsageError, match="a warm start needs at least 2 prompts"):
        Halves.of([BenchPrompt("a", "qa", "?")], "a warm start")
