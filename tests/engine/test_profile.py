from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from borrador.engine.profile import HeldProfile, Profile, profile_folder


def test_what_was_written_is_read_and_other_values_stay(tmp_path: Path) -> None:
    profile = Profile(tmp_path / "new" / "model.json")
    assert profile.read() == {}
    profile.write({"costs": [1.0, 2.0]})
    profile.write({"drafters": {"lookup": 3}})
    assert profile.read() == {"costs": [1.0, 2.0], "drafters": {"lookup": 3}, "version": 1}
    assert [path.name for path in profile.path.parent.iterdir()] == ["model.json"]


def test_a_damaged_profile_counts_as_none_and_is_replaced(tmp_path: Path) -> None:
    profile = Profile(tmp_path / "model.json")
    profile.write({"costs": 1})
    whole = profile.path.read_bytes()
    damaged = [whole[:end] for end in range(len(whole))]
    damaged += [b"[1]", b"\xff" * 30, b"[" * 10**5, json.dumps({"version": 2}).encode(), b" " * (2 << 20)]
    for content in damaged:
        profile.path.write_bytes(content)
        assert profile.read() == {}
    profile.write({"costs": 2})
    assert profile.read()["costs"] == 2


def test_a_disk_that_cannot_be_used_costs_a_message_and_nothing_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    profile = Profile(tmp_path / "file" / "model.json")
    with caplog.at_level(logging.WARNING, "borrador"):
        profile.write({"costs": 1})
    assert "cannot be written" in caplog.text
    assert profile.read() == {}


def test_models_instruction_sets_and_threads_have_profiles_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BORRADOR_PROFILES", str(tmp_path))
    one, two = tmp_path / "one.gguf", tmp_path / "two.gguf"
    one.write_bytes(b"a" * 100)
    two.write_bytes(b"a" * 101)
    choices = ((one, "avx2", 2), (two, "avx2", 2), (one, "avx2", 4), (one, "neon", 2), (one, "avx2", 2))
    profiles = [Profile.of(model, isa=isa, threads=threads) for model, isa, threads in choices]
    paths = [profile.path for profile in profiles if profile is not None]
    assert len(paths) == 5
    assert len(set(paths)) == 4
    assert paths[0] == paths[4]
    assert {path.parent for path in paths} == {tmp_path}


def test_the_folder_can_be_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BORRADOR_PROFILES", "/some/where")
    assert profile_folder() == Path("/some/where")
    monkeypatch.delenv("BORRADOR_PROFILES")
    assert profile_folder() == Path("~/.cache/borrador-profiles").expanduser()


def test_readers_see_whole_profiles_while_two_processes_write(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    script = (
        "import sys\nfrom pathlib import Path\nfrom borrador.engine.profile import Profile\n"
        "profile = Profile(Path(sys.argv[1]))\n"
        "for _ in range(150): profile.write({'numbers': [int(sys.argv[2])] * 5000})\n"
    )
    writers = [
        subprocess.Popen([sys.executable, "-c", script, str(path), number], env=os.environ) for number in ("1", "2")
    ]
    seen = set()
    while any(writer.poll() is None for writer in writers):
        stored = Profile(path).read()
        if stored:
            seen.add((len(stored["numbers"]), len(set(stored["numbers"]))))
    assert [writer.returncode for writer in writers] == [0, 0]
    assert seen == {(5000, 1)}
    assert [file.name for file in tmp_path.iterdir()] == ["model.json"]


def test_a_held_profile_writes_when_it_is_told_to(tmp_path: Path) -> None:
    origin = Profile(tmp_path / "model.json")
    origin.write({"costs": 1, "drafters": {"lookup": 2}})
    held = HeldProfile(origin, without=("costs",))
    assert held.read() == {"drafters": {"lookup": 2}, "version": 1}
    held.write({"settings": (1, 2)})
    assert origin.read() == {"costs": 1, "drafters": {"lookup": 2}, "version": 1}
    assert held.keep()
    assert origin.read() == {"costs": 1, "drafters": {"lookup": 2}, "settings": [1, 2], "version": 1}


def test_a_held_profile_says_if_it_could_not_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    held = HeldProfile(Profile(tmp_path / "file" / "model.json"))
    held.write({"costs": 1})
    assert not held.keep()


def test_without_a_home_nothing_is_kept_and_a_message_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("BORRADOR_PROFILES", "~nobody-here/profiles")
    model = tmp_path / "model.gguf"
    model.write_bytes(b"a")
    with caplog.at_level(logging.WARNING, "borrador"):
        assert Profile.of(model, isa="avx2", threads=2) is None
    assert "nothing is kept" in caplog.text
