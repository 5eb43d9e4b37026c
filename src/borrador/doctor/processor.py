"""The processor and its cores."""

from __future__ import annotations

import os
import platform

from borrador.doctor.facts import Cores, Processor
from borrador.doctor.system import System

# What Linux calls the extensions that the kernels use, or could.
FEATURES = {
    "avx2": "AVX2",
    "avx_vnni": "AVX-VNNI",
    "avx512f": "AVX-512",
    "avx512_vnni": "AVX-512 VNNI",
    "amx_int8": "AMX",
    "asimd": "NEON",
    "asimddp": "NEON dot product",
    "i8mm": "I8MM",
    "sve": "SVE",
}
_X86 = ("x86_64", "amd64", "i386", "i686")
_APPLE_DOT_PRODUCT = "hw.optional.arm.FEAT_DotProd"


def examine_processor(system: System, available: tuple[str, ...], architecture: str | None = None) -> Processor:
    """The processor that the system describes.

    Args:
        system: where to look.
        available: instruction sets the engine can use.
        architecture: that Python was built for; None asks Python.
    """
    architecture = architecture or platform.machine()
    fields = system.fields("proc/cpuinfo")
    flags = set((fields.get("flags") or fields.get("Features") or "").split())
    known = [title for flag, title in FEATURES.items() if flag in flags]
    if system.sysctl(_APPLE_DOT_PRODUCT) == "1":
        known = ["NEON", "NEON dot product"]
    return Processor(
        name=fields.get("model name") or system.sysctl("machdep.cpu.brand_string") or platform.processor() or "unknown",
        architecture=architecture,
        features=tuple(known),
        available=available,
        forced=os.environ.get("BORRADOR_ISA", ""),
        virtual="hypervisor" in flags if flags and architecture.lower() in _X86 else None,
        emulated=_is_emulated(system, architecture, fields),
    )


def _is_emulated(system: System, architecture: str, fields: dict[str, str]) -> bool:
    """Rosetta says so; an emulator of programs leaves the host's description in place, one of machines its own name."""
    if system.sysctl("sysctl.proc_translated") == "1":
        return True
    name = fields.get("model name", "")
    if "TCG" in name or "VirtualApple" in name:
        return True
    return bool(fields) and ("flags" in fields) != (architecture.lower() in _X86)


def examine_cores(system: System, threads: int) -> Cores:
    """The cores of the machine, and those this process may use. `threads` is what the engine takes by itself."""
    logical = os.cpu_count() or 1
    allowed = _allowed(logical)
    frequency = "sys/devices/system/cpu/cpu0/cpufreq/"
    return Cores(
        logical=logical,
        physical=_physical(system, allowed),
        allowed=len(allowed),
        quota=_quota(system),
        threads=threads,
        load=os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        memory_nodes=system.count("sys/devices/system/node/node[0-9]*") or None,
        governor=system.text(frequency + "scaling_governor"),
        frequency_driver=system.text(frequency + "scaling_driver"),
        energy_preference=system.text(frequency + "energy_performance_preference"),
    )


def _allowed(logical: int) -> set[int]:
    if hasattr(os, "sched_getaffinity"):
        return set(os.sched_getaffinity(0))
    return set(range(logical))


def _physical(system: System, allowed: set[int]) -> int | None:
    """Cores behind these processors: processors of one core name the same siblings."""
    apple = system.sysctl("hw.physicalcpu")
    if apple and apple.isdigit():
        return int(apple)
    siblings = [
        system.text(f"sys/devices/system/cpu/cpu{number}/topology/thread_siblings_list") for number in sorted(allowed)
    ]
    return None if None in siblings or not siblings else len(set(siblings))


def _quota(system: System) -> float | None:
    """As the engine reads it: control groups of version 2, then of version 1."""
    words = (system.text("sys/fs/cgroup/cpu.max") or "").split()
    if len(words) == 2:
        quota, period = words
    else:
        quota = system.text("sys/fs/cgroup/cpu/cpu.cfs_quota_us") or ""
        period = system.text("sys/fs/cgroup/cpu/cpu.cfs_period_us") or ""
    if not (quota.isdigit() and period.isdigit() and int(period)):
        return None
    return int(quota) / int(period)
