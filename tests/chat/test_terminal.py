from __future__ import annotations

import stat
from pathlib import Path

from borrador.chat.terminal import open_history


def fail(sentence: str) -> None:
    raise AssertionError(sentence)


def test_history_is_made_private_and_its_newest_lines_come_first(tmp_path: Path) -> None:
    path = tmp_path / "kept" / "chat-input"
    history = open_history(path, fail)
    for text in ("one", "two\nlines"):
        history.store_string(text)
    path.chmod(0o644)
    assert list(open_history(path, fail).load_history_strings()) == ["two\nlines", "one"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_history_does_not_grow_for_ever(tmp_path: Path) -> None:
    path = tmp_path / "chat-input"
    history = open_history(path, fail)
    for number in range(3000):
        history.store_string(f"{number} {'x' * 500}")
    kept = list(open_history(path, fail).load_history_strings())
    assert path.stat().st_size <= 1 << 19
    assert kept[0].startswith("2999 ")
    assert len(kept) > 900
    assert all(text.endswith(" " + "x" * 500) for text in kept)


def test_full_disk_does_not_end_the_chat(tmp_path: Path) -> None:
    path = tmp_path / "chat-input"
    history = open_history(path, fail)
    path.unlink()
    path.mkdir()
    history.store_string("lost")
