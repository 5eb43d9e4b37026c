from __future__ import annotations

import logging
import os
import subprocess
import sys
import time
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from borrador.draft import history_file
from borrador.draft.history import History, clear_history, history_folder, list_histories
from borrador.draft.history_file import DamagedError, ForeignError, Stored, decode, encode, newest
from borrador.errors import UsageError
from borrador.types import Int32Array

VOCABULARY = "a" * 64
ANSWERS = ([1, 2, 3], [4, 5, 6, 7])


def open_history(folder: Path, namespace: str = "test", vocabulary: str = VOCABULARY, **options: Any) -> History:
    return History(namespace, vocabulary, folder=folder, **options)


def stored_answers(folder: Path, namespace: str = "test") -> list[list[int]]:
    stored = history_file.read(open_history(folder, namespace).path)
    return [] if stored is None else [answer.tolist() for answer in stored.answers]


def arrays(*answers: Sequence[int]) -> list[Int32Array]:
    return [np.array(answer, np.int32) for answer in answers]


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A folder with a history of two answers."""
    history = open_history(tmp_path)
    for answer in ANSWERS:
        history.remember(answer)
    return tmp_path


@given(st.lists(st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=9), max_size=5))
def test_file_holds_what_was_written(answers: list[list[int]]) -> None:
    found = decode(encode(Stored("name", VOCABULARY, arrays(*answers))))
    assert found[:2] == ("name", VOCABULARY)
    assert [answer.tolist() for answer in found.answers] == answers


def test_answers_outlive_the_process(kept: Path) -> None:
    assert open_history(kept).automaton.length == 3 + 1 + 4 + 1
    assert stored_answers(kept) == [list(answer) for answer in ANSWERS]


def test_file_is_for_its_owner_alone(kept: Path) -> None:
    assert open_history(kept).path.stat().st_mode & 0o777 == 0o600
    folder = kept / "new"
    open_history(folder).remember([1, 2])
    assert folder.stat().st_mode & 0o777 == 0o700


def test_namespaces_and_vocabularies_share_nothing(kept: Path) -> None:
    assert open_history(kept, "other").automaton.length == 0
    assert open_history(kept, vocabulary="b" * 64).automaton.length == 0
    open_history(kept, "other").remember([8, 9])
    assert stored_answers(kept) == [list(answer) for answer in ANSWERS]


@pytest.mark.parametrize(("namespace", "vocabulary"), [("other", VOCABULARY), ("test", "a" * 16 + "b" * 48)])
def test_file_of_another_namespace_or_vocabulary_is_ignored_and_left_alone(
    kept: Path, caplog: pytest.LogCaptureFixture, namespace: str, vocabulary: str
) -> None:
    path = open_history(kept).path
    data = encode(Stored(namespace, vocabulary, arrays([8, 9])))
    path.write_bytes(data)
    history = open_history(kept)
    history.remember([1, 2])
    assert history.automaton.length == 3  # kept in memory
    assert path.read_bytes() == data
    assert "is of another namespace or vocabulary" in caplog.text
    assert "borrador history clear test" in caplog.text


@pytest.mark.parametrize("data", [b"#!/bin/sh\n", b"BORRADOR-HISTORY", encode(Stored("test", VOCABULARY, []))[:40]])
def test_damaged_or_foreign_files_never_crash(kept: Path, caplog: pytest.LogCaptureFixture, data: bytes) -> None:
    path = open_history(kept).path
    path.write_bytes(data)
    history = open_history(kept)
    assert history.automaton.length == 0
    history.remember([1, 2])
    assert caplog.text.count(path.name) == 1  # said once, however often the file is looked at
    foreign = data.startswith(b"#")
    assert (path.read_bytes() == data) is foreign


def test_empty_file_is_replaced(kept: Path) -> None:
    open_history(kept).path.write_bytes(b"")
    open_history(kept).remember([1, 2])
    assert stored_answers(kept) == [[1, 2]]


def test_newer_format_is_left_alone(kept: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = open_history(kept).path
    data = b"BORRADOR-HISTORY 2\nwhatever"
    data += zlib.crc32(data).to_bytes(4, "little")
    path.write_bytes(data)
    open_history(kept).remember([1, 2])
    assert path.read_bytes() == data
    assert "its format is version 2, not 1" in caplog.text


def test_damage_at_every_byte_is_noticed(kept: Path) -> None:
    data = open_history(kept).path.read_bytes()
    for index in range(len(data)):
        for damaged in (data[:index], data[:index] + bytes([data[index] ^ 1 << index % 8]) + data[index + 1 :]):
            with pytest.raises((DamagedError, ForeignError)):
                decode(damaged)


@pytest.mark.parametrize(
    "head",
    [
        "[]",
        "{}",
        "5",
        "not json",
        "[" * 100_000,
        '{"namespace": "test", "vocabulary": 5, "lengths": [2]}',
        '{"namespace": "test", "vocabulary": "a", "lengths": 2}',
        '{"namespace": "test", "vocabulary": "a", "lengths": [3]}',
        '{"namespace": "test", "vocabulary": "a", "lengths": [3, -1]}',
        '{"namespace": "test", "vocabulary": "a", "lengths": [true, 1]}',
        '{"namespace": "test", "vocabulary": "a", "lengths": [1e400]}',
    ],
)
def test_forged_heads_are_refused(head: str) -> None:
    data = b"BORRADOR-HISTORY 1\n" + head.encode() + b"\n" + np.array([1, 2], "<i4").tobytes()
    with pytest.raises(DamagedError):
        decode(data + zlib.crc32(data).to_bytes(4, "little"))


def test_negative_token_ids_are_refused() -> None:
    with pytest.raises(DamagedError):
        decode(encode(Stored("test", VOCABULARY, arrays([1, -1]))))


@given(st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=9), max_size=6), st.integers(0, 20))
def test_oldest_answers_are_dropped(answers: list[list[int]], limit: int) -> None:
    kept = [answer.tolist() for answer in newest(arrays(*answers), limit)]
    assert sum(map(len, kept)) <= limit
    whole = answers[len(answers) - len(kept) :]
    if kept and kept != whole:
        assert kept == [whole[0][-limit:]]  # one answer that is longer than all that may be kept
    elif len(kept) < len(answers):
        left = limit - sum(map(len, kept))
        assert len(answers[-1 - len(kept)]) > left


def test_size_is_bounded_on_disk_and_in_memory(tmp_path: Path) -> None:
    history = open_history(tmp_path, most_tokens=20)
    for number in range(50):
        history.remember([number, number + 1, number + 2])
        assert history.automaton.length <= history.automaton.capacity == 42
    assert stored_answers(tmp_path) == [[n, n + 1, n + 2] for n in range(44, 50)]
    history.remember(list(range(100)))
    assert stored_answers(tmp_path) == [list(range(80, 100))]


def test_answers_of_one_token_are_not_kept(tmp_path: Path) -> None:
    open_history(tmp_path).remember([1])
    open_history(tmp_path).remember([])
    assert stored_answers(tmp_path) == []


def test_answers_of_two_histories_are_joined(tmp_path: Path) -> None:
    first, second = open_history(tmp_path), open_history(tmp_path)
    first.remember([1, 2])
    second.remember([3, 4])
    first.remember([5, 6])
    assert stored_answers(tmp_path) == [[1, 2], [3, 4], [5, 6]]


WRITER = """
import sys
from pathlib import Path
from borrador.draft import history_file
from borrador.draft.history import History
history_file._LOCK_WAIT_S = 100.0  # on a busy machine a place to write takes longer to come by
history = History("test", "a" * 64, folder=Path(sys.argv[1]), most_tokens=100_000)
print("ready", flush=True)
number = 0
while number < int(sys.argv[3]):
    history.remember([int(sys.argv[2]), number] + [7] * 500)
    number += 1
"""


def start_writer(folder: Path, name: int, count: int) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-c", WRITER, str(folder), str(name), str(count)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})


def test_two_processes_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    writers = [start_writer(tmp_path, name, 40) for name in (1, 2)]
    for writer in writers:
        writer.communicate(timeout=120)
        assert writer.returncode == 0
    answers = stored_answers(tmp_path)
    for name in (1, 2):
        assert [answer[1] for answer in answers if answer[0] == name] == list(range(40))


def test_killed_writer_leaves_a_whole_file(tmp_path: Path) -> None:
    for delay in (0.0, 0.01, 0.02, 0.05):
        with start_writer(tmp_path, 1, 10**9) as writer:
            assert writer.stdout is not None
            writer.stdout.readline()
            time.sleep(delay)
            writer.kill()
        stored_answers(tmp_path)  # raises where the file is not whole
    history = open_history(tmp_path)
    history.remember([5, 6])
    assert stored_answers(tmp_path)[-1] == [5, 6]
    assert sorted(path.name for path in tmp_path.iterdir()) == [".lock", history.path.name]


def test_write_that_fails_leaves_the_old_file_and_is_made_up_for(
    kept: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(stored: Stored) -> bytes:
        raise OSError(28, "No space left on device")

    history = open_history(kept)
    with monkeypatch.context() as patch:
        patch.setattr(history_file, "encode", refuse)
        history.remember([8, 9])
        history.close()
    assert caplog.text.count("is not kept: No space left on device") == 1
    assert stored_answers(kept) == [list(answer) for answer in ANSWERS]
    assert not list(kept.glob(".partial-*"))
    history.close()
    assert stored_answers(kept) == [*(list(answer) for answer in ANSWERS), [8, 9]]


def test_folder_that_another_process_holds_does_not_hold_up_answers(
    kept: Path, caplog: pytest.LogCaptureFixture
) -> None:
    history = open_history(kept)
    with history_file.locked(kept):
        history.remember([8, 9])
    assert "another process has held" in caplog.text
    assert history.automaton.length == 9 + 3


def test_folder_that_is_a_file_gives_a_message(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").touch()
    with caplog.at_level(logging.WARNING, "borrador"):
        open_history(tmp_path / "file").remember([1, 2])
    assert "cannot be read, and nothing is added to it: Not a directory" in caplog.text
    assert "history clear" not in caplog.text  # it would not help


def test_folder_is_that_of_the_environment_or_the_users_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BORRADOR_HISTORY", "/tmp/elsewhere")
    assert history_folder() == Path("/tmp/elsewhere")
    monkeypatch.setenv("BORRADOR_HISTORY", "")
    monkeypatch.setenv("HOME", "/home/somebody")
    assert history_folder() == Path("/home/somebody/.cache/borrador-history")
    monkeypatch.setenv("BORRADOR_HISTORY", "~nobody-of-this-name/x")
    with pytest.raises(UsageError, match="home folder"):
        history_folder()


def test_histories_are_listed_and_cleared_by_name(kept: Path) -> None:
    open_history(kept, "other").remember([1, 2])
    open_history(kept, "other", "b" * 64).remember([1, 2, 3])
    (kept / f"broken@{'c' * 16}.history").write_bytes(b"nothing of ours")
    found = [(entry.namespace, entry.answers, entry.tokens) for entry in list_histories(kept)]
    assert found == [("broken", None, None), ("other", 1, 2), ("other", 1, 3), ("test", 2, 7)]
    assert clear_history("other", kept) == 2
    assert [entry.namespace for entry in list_histories(kept)] == ["broken", "test"]
    with pytest.raises(UsageError, match="there is no history other"):
        clear_history("other", kept)
    assert clear_history(None, kept) == 2
    assert clear_history(None, kept) == 0
    assert list_histories(kept) == []


def test_bad_names_are_refused(tmp_path: Path) -> None:
    for name in ("", "..", "a/b", "A", "x" * 65, "-x", "a@b", "é"):
        with pytest.raises(UsageError, match="must be 1 to 64 lower-case letters"):
            open_history(tmp_path, name)
        with pytest.raises(UsageError, match="must be 1 to 64 lower-case letters"):
            clear_history(name, tmp_path)


def test_frozen_history_is_proposed_from_and_not_added_to(kept: Path) -> None:
    history = open_history(kept)
    history.freeze()
    length = history.automaton.length
    history.remember([8, 9])
    history.close()
    assert history.automaton.length == length > 0
    assert stored_answers(kept) == [list(answer) for answer in ANSWERS]


def test_a_history_deleted_while_they_are_listed_is_left_out(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "glob", lambda folder, _pattern: iter([folder / "gone@0.history"]))
    assert list_histories(kept) == []
