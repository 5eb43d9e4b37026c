from __future__ import annotations

import os
from pathlib import Path

import pytest

from borrador.doctor.processor import examine_cores, examine_processor
from borrador.doctor.system import System

AVAILABLE = ("portable", "avx2")


def _system(root: Path, files: dict[str, str]) -> System:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    return System(root, "linux")


def test_name_and_extensions_come_from_the_first_processor(tmp_path: Path) -> None:
    lines = "model name\t: Xeon Gold\nflags\t\t: fpu avx2 avx512f avx512_vnni amx_int8 hypervisor\n"
    system = _system(tmp_path, {"proc/cpuinfo": f"{lines}\n{lines.replace('Gold', 'Silver')}"})
    found = examine_processor(system, AVAILABLE, "x86_64")
    assert (found.name, found.virtual, found.emulated) == ("Xeon Gold", True, False)
    assert found.features == ("AVX2", "AVX-512", "AVX-512 VNNI", "AMX")


def test_arm_is_read_by_its_own_words(tmp_path: Path) -> None:
    system = _system(tmp_path, {"proc/cpuinfo": "Features\t: fp asimd asimddp i8mm\n"})
    found = examine_processor(system, AVAILABLE, "aarch64")
    assert (found.features, found.virtual, found.emulated) == (("NEON", "NEON dot product", "I8MM"), None, False)


@pytest.mark.parametrize(
    ("cpuinfo", "architecture"),
    [
        ("model name : Xeon\nflags : avx2\n", "aarch64"),
        ("Features : asimd\n", "x86_64"),
        ("model name : QEMU TCG CPU version 2.5+\nflags : sse2\n", "x86_64"),
        ("model name : VirtualApple @ 2.50GHz\nflags : sse2\n", "x86_64"),
    ],
)
def test_an_emulator_is_noticed_by_what_does_not_fit(tmp_path: Path, cpuinfo: str, architecture: str) -> None:
    assert examine_processor(_system(tmp_path, {"proc/cpuinfo": cpuinfo}), AVAILABLE, architecture).emulated


def test_a_system_that_tells_nothing_is_no_emulator(tmp_path: Path) -> None:
    found = examine_processor(_system(tmp_path, {}), AVAILABLE, "riscv64")
    assert (found.emulated, found.virtual, found.features) == (False, None, ())


def test_the_instruction_set_in_use_is_the_forced_or_the_best(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    system = _system(tmp_path, {})
    for forced, used in (("", "avx2"), ("portable", "portable"), ("neon", None)):
        monkeypatch.setenv("BORRADOR_ISA", forced)
        found = examine_processor(system, AVAILABLE)
        assert (found.forced, found.used) == (forced, used)


def test_cores_that_share_siblings_are_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0, 1, 3}, raising=False)
    siblings = {0: "0,2", 1: "1,3", 3: "1,3"}
    files = {f"sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list": text for cpu, text in siblings.items()}
    found = examine_cores(_system(tmp_path, {**files, "sys/devices/system/node/node0/x": ""}), 3)
    assert (found.allowed, found.physical, found.threads, found.memory_nodes) == (3, 2, 3, 1)
    (tmp_path / "sys/devices/system/cpu/cpu3/topology/thread_siblings_list").unlink()
    assert examine_cores(System(tmp_path, "linux"), 3).physical is None


@pytest.mark.parametrize(
    ("files", "quota"),
    [
        ({"sys/fs/cgroup/cpu.max": "150000 100000\n"}, 1.5),
        ({"sys/fs/cgroup/cpu.max": "max 100000\n"}, None),
        ({"sys/fs/cgroup/cpu/cpu.cfs_quota_us": "400000", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000"}, 4.0),
        ({"sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000"}, None),
        ({"sys/fs/cgroup/cpu.max": "100000 0"}, None),
        ({}, None),
    ],
)
def test_quota_is_that_of_the_control_group(tmp_path: Path, files: dict[str, str], quota: float | None) -> None:
    assert examine_cores(_system(tmp_path, files), 1).quota == quota


def test_governor_and_driver_are_those_of_the_first_processor(tmp_path: Path) -> None:
    folder = "sys/devices/system/cpu/cpu0/cpufreq/"
    files = {"scaling_governor": "powersave\n", "scaling_driver": "intel_pstate\n"}
    found = examine_cores(_system(tmp_path, {folder + name: text for name, text in files.items()}), 1)
    assert (found.governor, found.frequency_driver, found.energy_preference) == ("powersave", "intel_pstate", None)
