"""How much memory is free for weights."""

from __future__ import annotations

from pathlib import Path

_UNLIMITED = 1 << 60


def available_bytes() -> int | None:
    """Memory that can be had without swapping: what the system has free, within the cgroup's limit; None if unknown."""
    limits = [limit for limit in (_system_bytes(), _cgroup_bytes()) if limit is not None]
    return min(limits, default=None)


def _system_bytes() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), None)


def _cgroup_bytes() -> int | None:
    limit, used = _number("/sys/fs/cgroup/memory.max"), _number("/sys/fs/cgroup/memory.current")
    if limit is None or limit >= _UNLIMITED:
        return None
    # Page cache counts as used but gives way; what it holds is not known here, so half of the use is allowed for.
    return limit - (used or 0) // 2


def _number(path: str) -> int | None:
    try:
        return int(Path(path).read_text(encoding="ascii"))
    except (OSError, ValueError):  # no such group, or "max"
        return None
