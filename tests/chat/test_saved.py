from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from borrador.chat.conversation import Conversation, Exchange
from borrador.chat.saved import SavedChat, load, save
from borrador.chat.settings import Drafting, Settings
from borrador.errors import BorradorError, UsageError
from borrador.types import SamplingParams

CHAT = SavedChat(
    Conversation("Be brief.", [Exchange("One", "Uno"), Exchange("Zwei\n?", "ö \U0001f600", stopped=True)]),
    Settings(
        sampling=SamplingParams(temperature=0.5, seed=2**63, stop=("END", "\n\n")), drafting=Drafting(draft_tokens=7)
    ),
)


def entry(**changes: Any) -> dict[str, Any]:
    whole = {"format": "borrador-chat", "version": 1, "settings": {}, "messages": []}
    return {name: value for name, value in {**whole, **changes}.items() if value is not None}


def test_what_is_loaded_is_what_was_saved(tmp_path: Path) -> None:
    save(str(tmp_path / "chat.json"), CHAT, "tiny")
    assert load(str(tmp_path / "chat.json"), Settings()) == CHAT


def test_chat_replaces_another_chat_through_a_link(tmp_path: Path) -> None:
    target, link = tmp_path / "chat.json", tmp_path / "link.json"
    save(str(target), SavedChat(Conversation(), Settings()), "tiny")
    link.symlink_to(target)
    assert save(str(link), CHAT, "tiny") == target
    assert link.is_symlink()
    assert load(str(target), Settings()) == CHAT


def test_failed_save_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "chat.json"
    save(str(path), CHAT, "tiny")
    before = path.read_bytes()

    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(BorradorError, match="cannot be written: No space left on device"):
        save(str(path), SavedChat(Conversation(), Settings()), "tiny")
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("content", ["notes", "{}", '{"format": "other"}', "[1]"])
def test_file_of_another_program_is_not_replaced(tmp_path: Path, content: str) -> None:
    path = tmp_path / "notes.txt"
    path.write_text(content)
    with pytest.raises(UsageError, match="exists and is not a saved chat"):
        save(str(path), CHAT, "tiny")
    assert path.read_text() == content


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "it is not JSON"),
        (b"\xff\xfe", "it is not JSON"),
        (b"[" * 100_000, "it is not JSON"),
        (b"[]", "it is of another program"),
        (json.dumps(entry(version=2)).encode(), "its version is 2, not 1"),
        (json.dumps(entry(messages=None)).encode(), "its messages are not a conversation"),
        (json.dumps(entry(settings=None)).encode(), "its messages are not a conversation"),
        (json.dumps(entry(messages=[1])).encode(), "its messages are not a conversation"),
        (json.dumps(entry(messages=[{"role": "user", "content": "?"}])).encode(), "are not a conversation"),
        (json.dumps(entry(messages=[{"role": "user", "content": 1}] * 2)).encode(), "are not a conversation"),
        (json.dumps(entry(messages=[{"role": "system", "content": "\ud800"}])).encode(), "are not a conversation"),
        (json.dumps(entry(settings={"temperature": -1})).encode(), "temperature must be in"),
        (json.dumps(entry(settings={"mood": 1})).encode(), "there is no setting 'mood'"),
        (json.dumps(entry(settings={"draft": 4})).encode(), "drafting is on, on N, off or auto, got 4"),
    ],
)
def test_bad_file_is_a_sentence(tmp_path: Path, content: bytes, told: str) -> None:
    path = tmp_path / "chat.json"
    path.write_bytes(content)
    with pytest.raises(UsageError) as caught:
        load(str(path), Settings())
    assert f"{path} is not a saved chat: " in str(caught.value)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["/dev/zero", "/", "missing.json", "x" * 300, "a\0b", "~nobody-of-this-name/chat"])
def test_name_that_is_no_file_is_a_sentence(name: str) -> None:
    with pytest.raises(UsageError):
        load(name, Settings())


@pytest.mark.parametrize("name", ["/dev/null", "/", "x" * 300, "a\0b", "/proc/chat.json"])
def test_place_that_takes_no_file_is_a_sentence(name: str) -> None:
    with pytest.raises(BorradorError):
        save(name, CHAT, "tiny")
