from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.doctor.machines import GOOD, TRIAL, machine

from borrador.doctor.advice import advise
from borrador.doctor.facts import Facts

OLD = {"available": ("portable", "avx2"), "features": ("AVX2",)}
CASES: list[tuple[dict[str, Any], str, tuple[str, ...]]] = [
    ({"processor": {"emulated": True}}, "emulation", ("x86_64",)),
    ({"processor": {"forced": "avx2"}}, "forced-instructions", ("avx2", "avx512vnni", "Unset BORRADOR_ISA")),
    ({"processor": OLD}, "instructions", ("AMD Ryzen 9 has no AVX-512 VNNI or AVX-VNNI", "avx2 is used")),
    ({"processor": {**OLD, "virtual": True}}, "instructions", ("ask for the host's CPU model",)),
    ({"processor": {**OLD, "features": ("AVX2", "AVX-VNNI")}}, "instructions", ("GCC 11",)),
    ({"processor": {"available": ("portable",), "features": ()}}, "instructions", ("has no AVX2",)),
    (
        {"processor": {"available": ("portable",), "features": ("NEON",), "architecture": "aarch64"}},
        "instructions",
        ("has no NEON dot product",),
    ),
    ({"cores": {"quota": 2.5}}, "cpu-quota", ("2.5 of 8", "--cpus")),
    ({"cores": {"physical": 4}}, "threads", ("8 threads run on 4", "--threads 4")),
    ({"cores": {"load": 4.1}}, "load", ("4.1 threads", "8 processors")),
    ({"cores": {"memory_nodes": 2}}, "memory-nodes", ("2 NUMA nodes", "numactl")),
    ({"cores": {"governor": "powersave"}}, "frequency", ("cpupower frequency-set -g performance",)),
    (
        {"cores": {"governor": "powersave", "frequency_driver": "intel_pstate", "energy_preference": "power"}},
        "frequency",
        ("(power)", "energy_performance_preference"),
    ),
    ({"memory": {"huge_pages": "never", "huge_share": None}}, "huge-pages", ("echo madvise",)),
    ({"memory": {"huge_share": 0.5}}, "huge-pages", ("50%", "compact_memory")),
    ({"memory": {"swap_used_bytes": 2 * 10**9}}, "swap", ("2.0 GB",)),
    ({"speed": {"read_bandwidth": 20e9}}, "memory-channel", ("8 threads read 20 GB/s",)),
]


def test_nothing_is_said_of_a_good_machine() -> None:
    assert advise(GOOD) == []
    assert advise(replace(GOOD, trial=TRIAL)) == []


@pytest.mark.parametrize(("changes", "topic", "words"), CASES)
def test_each_shortcoming_is_named_alone_with_a_remedy(
    changes: dict[str, Any], topic: str, words: tuple[str, ...]
) -> None:
    (advice,) = advise(machine(**changes))
    assert advice.topic == topic
    assert all(word in f"{advice.finding}. {advice.remedy}" for word in words)
    assert advice.remedy.strip()
    assert not advice.finding.endswith(".")


@pytest.mark.parametrize(
    "facts",
    [
        machine(cores={"quota": 8.0}),
        machine(cores={"quota": None, "physical": None, "load": None, "memory_nodes": None}),
        machine(cores={"threads": 4, "physical": 4}),
        machine(
            cores={"governor": "powersave", "frequency_driver": "intel_pstate", "energy_preference": "performance"}
        ),
        machine(cores={"governor": "schedutil"}),
        machine(memory={"huge_pages": None, "huge_share": None}),
        machine(memory={"huge_pages": "always", "huge_share": 0.95}),
        machine(memory={"swap_used_bytes": 10**8}),
        machine(memory={"total_bytes": None, "swap_used_bytes": None}),
        machine(processor={"available": ("portable", "neon"), "architecture": "aarch64", "features": ("NEON",)}),
        # One cannot put memory into a virtual machine, and few threads do not fill two channels.
        machine(speed={"read_bandwidth": 20e9}, processor={"virtual": True}),
        machine(speed={"read_bandwidth": 20e9}, processor={"virtual": None}),
        machine(speed={"read_bandwidth": 20e9}, cores={"threads": 2}),
    ],
)
def test_nothing_is_said_where_nothing_is_wrong_or_known(facts: Facts) -> None:
    assert advise(facts) == []


def test_of_weights_that_were_loaded_their_own_pages_count() -> None:
    (advice,) = advise(replace(GOOD, trial=replace(TRIAL, huge_share=0.25)))
    assert (advice.topic, "25%" in advice.finding) == ("huge-pages", True)
