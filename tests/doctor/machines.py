"""A machine on which nothing is left to improve, and changes to it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from borrador.doctor.facts import Cores, Facts, Folder, Memory, ModelFile, Processor, Software, Speed, Trial

TARGET = ModelFile(
    name="qwen2.5-coder-1.5b",
    path=Path("/models/target.gguf"),
    file_bytes=1_117_320_768,
    whole=True,
    planned=("suffix", "qwen2.5-coder-0.5b"),
)
DRAFT = ModelFile(
    name="qwen2.5-coder-0.5b", path=Path("/models/draft.gguf"), file_bytes=491_400_064, whole=True, planned=("suffix",)
)
GOOD = Facts(
    processor=Processor(
        name="AMD Ryzen 9",
        architecture="x86_64",
        features=("AVX2", "AVX-512", "AVX-512 VNNI"),
        available=("portable", "avx2", "avx512vnni"),
        virtual=False,
    ),
    cores=Cores(
        logical=8,
        physical=8,
        allowed=8,
        threads=8,
        load=0.4,
        memory_nodes=1,
        governor="performance",
        frequency_driver="acpi-cpufreq",
    ),
    memory=Memory(
        total_bytes=32 * 10**9,
        free_bytes=30 * 10**9,
        swap_bytes=8 * 10**9,
        swap_used_bytes=0,
        huge_pages="madvise",
        huge_share=1.0,
    ),
    software=Software(
        borrador="1", python="CPython 3.12", system="Linux 6", packages={}, missing_extras={}, drafters=()
    ),
    speed=Speed(read_bandwidth=60e9, integer_peak=2e12),
    folders=(
        Folder(
            purpose="profiles",
            path=Path("/home/profiles"),
            exists=True,
            writable=True,
            used_bytes=10,
            disk_free_bytes=10**9,
        ),
    ),
    models=(DRAFT, TARGET),
)
TRIAL = Trial(
    model=TARGET.name,
    load_s=1.0,
    weights_bytes=10**9,
    huge_share=1.0,
    pass_s=0.02,
    limit_s=0.017,
    profile=True,
)


def machine(**changes: dict[str, Any]) -> Facts:
    """The good machine with some facts of its parts changed, as `machine(cores={"threads": 4})`."""
    parts = {part: replace(getattr(GOOD, part), **values) for part, values in changes.items()}
    return replace(GOOD, **parts)
