"""Main memory and its pages."""

from __future__ import annotations

import mmap
import os
import re

from borrador.doctor.facts import Memory
from borrador.doctor.system import System
from borrador.models.memory import available_bytes

_HUGE_PAGE_BYTES = 2 << 20
_PROBE_PAGES = 16


def examine_memory(system: System) -> Memory:
    """What memory there is, and whether 2 MiB pages are to be had."""
    meminfo = "proc/meminfo"
    swap, unused = system.kilobytes(meminfo, "SwapTotal"), system.kilobytes(meminfo, "SwapFree")
    mode = huge_page_mode(system)
    return Memory(
        total_bytes=system.kilobytes(meminfo, "MemTotal") or _total_elsewhere(),
        free_bytes=available_bytes(),
        limit_bytes=_limit(system),
        swap_bytes=swap,
        swap_used_bytes=None if swap is None or unused is None else swap - unused,
        huge_pages=mode,
        huge_share=None if mode in (None, "never") else probe_huge_pages(system),
    )


def huge_page_mode(system: System) -> str | None:
    """The word in brackets of `always [madvise] never`; None where the system has no such pages."""
    found = re.search(r"\[(\w+)\]", system.text("sys/kernel/mm/transparent_hugepage/enabled") or "")
    return found[1] if found else None


def huge_bytes(system: System) -> int | None:
    """Bytes of this process in 2 MiB pages."""
    return system.kilobytes("proc/self/smaps_rollup", "AnonHugePages")


def probe_huge_pages(system: System) -> float | None:
    """The share of a block of memory that got 2 MiB pages when it asked for them as weights do."""
    before = huge_bytes(system)
    if before is None or not hasattr(mmap, "MADV_HUGEPAGE"):
        return None
    # One page more, because the block need not begin where a page does.
    with mmap.mmap(-1, (_PROBE_PAGES + 1) * _HUGE_PAGE_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as block:
        block.madvise(mmap.MADV_HUGEPAGE)
        for start in range(0, len(block), mmap.PAGESIZE):
            block[start] = 1
        after = huge_bytes(system)
    return None if after is None else min(max(after - before, 0) / (_PROBE_PAGES * _HUGE_PAGE_BYTES), 1.0)


def _limit(system: System) -> int | None:
    return system.number("sys/fs/cgroup/memory.max")


def _total_elsewhere() -> int | None:
    """By POSIX names, which Windows lacks."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None
