from __future__ import annotations

import sys
from pathlib import Path

import pytest

from borrador.doctor.memory import examine_memory, huge_page_mode, probe_huge_pages
from borrador.doctor.system import System


def _write(root: Path, name: str, content: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(content, encoding="utf-8")


def test_memory_and_swap_are_read_in_bytes(tmp_path: Path) -> None:
    _write(tmp_path, "proc/meminfo", "MemTotal:  2000 kB\nSwapTotal:  500 kB\nSwapFree:  100 kB\n")
    _write(tmp_path, "sys/fs/cgroup/memory.max", "1000000\n")
    found = examine_memory(System(tmp_path, "linux"))
    assert (found.total_bytes, found.swap_bytes, found.swap_used_bytes) == (2_048_000, 512_000, 409_600)
    assert found.limit_bytes == 1_000_000
    _write(tmp_path, "sys/fs/cgroup/memory.max", "max\n")
    assert examine_memory(System(tmp_path, "linux")).limit_bytes is None


def test_a_system_that_tells_nothing_leaves_it_open(tmp_path: Path) -> None:
    found = examine_memory(System(tmp_path, "linux"))
    assert (found.swap_bytes, found.swap_used_bytes, found.huge_pages, found.huge_share) == (None, None, None, None)


@pytest.mark.parametrize(
    ("content", "mode"),
    [("always [madvise] never\n", "madvise"), ("[always] madvise never", "always"), ("", None), ("odd", None)],
)
def test_mode_of_huge_pages_is_the_word_in_brackets(tmp_path: Path, content: str, mode: str | None) -> None:
    _write(tmp_path, "sys/kernel/mm/transparent_hugepage/enabled", content)
    assert huge_page_mode(System(tmp_path, "linux")) == mode


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has these files")
def test_a_probe_gets_a_share_of_huge_pages_and_gives_them_back() -> None:
    system = System()
    share = probe_huge_pages(system)
    assert share is None or 0.0 <= share <= 1.0
    if huge_page_mode(system) == "never":
        assert share == 0.0


def test_the_share_is_what_the_process_gained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = iter([4 << 20, 20 << 20])
    monkeypatch.setattr("borrador.doctor.memory.huge_bytes", lambda _system: next(held))
    assert probe_huge_pages(System(tmp_path, "linux")) == 0.5
