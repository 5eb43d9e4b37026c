"""What a machine's processor, memory and settings could do better."""

from __future__ import annotations

from borrador.doctor.facts import Facts
from borrador.doctor.rule import Advice, Rule

_FAST = ("avx512vnni", "avxvnni", "neon")
_X86 = ("x86_64", "amd64")
_SELF_STEERING = ("intel_pstate", "amd-pstate-epp")
_ONE_CHANNEL = 25.6e9  # bytes a second of one channel of DDR4-3200
_CORES_OF_TWO_CHANNELS = 4
_MOST_SMALL_PAGES = 0.1
_SWAP_SHARE = 0.02


def warn_of_emulation(facts: Facts) -> Advice | None:
    """Translated instructions are several times slower."""
    if not facts.processor.emulated:
        return None
    return Advice(
        topic="emulation",
        finding=f"this Python was built for {facts.processor.architecture}, and its instructions are translated for"
        " another processor",
        remedy="Install a Python for the processor that this machine has, and borrador in it.",
    )


def warn_of_forced_instructions(facts: Facts) -> Advice | None:
    used, best = facts.processor.used, facts.processor.available[-1]
    if used is None or used == best:
        return None
    return Advice(
        topic="forced-instructions",
        finding=f"BORRADOR_ISA forces {used}, and {best} is here and faster",
        remedy="Unset BORRADOR_ISA.",
    )


def warn_of_slow_instructions(facts: Facts) -> Advice | None:
    """What the processor lacks for fast products of integers."""
    processor = facts.processor
    best = processor.available[-1]
    if best in _FAST or processor.emulated:
        return None
    wanted = _wanted(best, processor.architecture)
    if any(extension in processor.features for extension in wanted):
        return Advice(
            topic="instructions",
            finding=f"the processor has {' or '.join(wanted)}, and this build of borrador uses {best}",
            remedy="Build borrador with GCC 11, Clang 12 or newer.",
        )
    hidden = " A virtual machine may hide what its host has: ask for the host's CPU model." if processor.virtual else ""
    return Advice(
        topic="instructions",
        finding=f"{processor.name} has no {' or '.join(wanted)}, so {best} is used, and rows cost more",
        remedy=f"Choose a machine that has it.{hidden}",
    )


def _wanted(best: str, architecture: str) -> tuple[str, ...]:
    """The extensions that the next faster kernels need, by the names of features."""
    if architecture.lower() not in _X86:
        return ("NEON dot product",)
    return ("AVX-512 VNNI", "AVX-VNNI") if best == "avx2" else ("AVX2",)


def warn_of_quota(facts: Facts) -> Advice | None:
    cores = facts.cores
    if cores.quota is None or cores.quota >= cores.allowed:
        return None
    return Advice(
        topic="cpu-quota",
        finding=f"the container may use {cores.quota:g} of {cores.allowed} processors' time",
        remedy="Allow it more (docker --cpus, Kubernetes limits.cpu), in whole numbers: a fraction of one stops all"
        " threads for a while in every period.",
    )


def warn_of_shared_cores(facts: Facts) -> Advice | None:
    """Two threads of one core share its integer units and its bandwidth."""
    cores = facts.cores
    if cores.physical is None or cores.threads <= cores.physical:
        return None
    return Advice(
        topic="threads",
        finding=f"{cores.threads} threads run on {cores.physical} physical cores",
        remedy=f"Try --threads {cores.physical}: compare `borrador rows --threads {cores.physical}` with"
        " `borrador rows`.",
    )


def warn_of_load(facts: Facts) -> Advice | None:
    cores = facts.cores
    if cores.load is None or cores.load <= cores.logical / 2:
        return None
    return Advice(
        topic="load",
        finding=f"other programs are busy: {cores.load:.1f} threads wanted to run over the last minute, on"
        f" {cores.logical} processors",
        remedy="Close them, or give borrador fewer --threads; a thread that waits for its core holds up all others.",
    )


def warn_of_memory_nodes(facts: Facts) -> Advice | None:
    nodes = facts.cores.memory_nodes
    if nodes is None or nodes < 2:
        return None
    return Advice(
        topic="memory-nodes",
        finding=f"memory is spread over {nodes} NUMA nodes, and threads of one read weights that lie in another",
        remedy="Keep to one: numactl --cpunodebind=0 --membind=0 borrador ...",
    )


def warn_of_governor(facts: Facts) -> Advice | None:
    """`powersave` is harmless where the processor chooses its frequency itself, unless it was told to save power."""
    cores = facts.cores
    steers_itself = cores.frequency_driver in _SELF_STEERING
    if steers_itself and cores.energy_preference in ("power", "balance_power"):
        return Advice(
            topic="frequency",
            finding=f"the processor prefers to save energy ({cores.energy_preference})",
            remedy="Run: echo performance | sudo tee"
            " /sys/devices/system/cpu/cpu*/cpufreq/energy_performance_preference",
        )
    if steers_itself or cores.governor != "powersave":
        return None
    return Advice(
        topic="frequency",
        finding="the governor powersave keeps the processor at its lowest frequency",
        remedy="Run: sudo cpupower frequency-set -g performance",
    )


def warn_of_small_pages(facts: Facts) -> Advice | None:
    """Weights in 4 KiB pages cost a look-up for every page that is read."""
    memory = facts.memory
    if memory.huge_pages == "never":
        return Advice(
            topic="huge-pages",
            finding="the system gives no 2 MiB pages, and weights are read faster from them",
            remedy="Run: echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
        )
    share = memory.huge_share if facts.trial is None else facts.trial.huge_share
    if share is None or share >= 1 - _MOST_SMALL_PAGES:
        return None
    return Advice(
        topic="huge-pages",
        finding=f"only {share:.0%} of memory that asked for 2 MiB pages got them: what is free lies in small pieces",
        remedy="Run: echo 1 | sudo tee /proc/sys/vm/compact_memory, then start again.",
    )


def warn_of_swap(facts: Facts) -> Advice | None:
    memory = facts.memory
    if not memory.total_bytes or not memory.swap_used_bytes:
        return None
    if memory.swap_used_bytes < _SWAP_SHARE * memory.total_bytes:
        return None
    return Advice(
        topic="swap",
        finding=f"{memory.swap_used_bytes / 1e9:.1f} GB are swapped out: memory is short, or was",
        remedy="Close programs: weights that are swapped out are read from the disk in every pass.",
    )


def warn_of_one_channel(facts: Facts) -> Advice | None:
    """Only of machines that one can open."""
    if facts.speed is None or facts.processor.virtual is not False or facts.processor.emulated:
        return None
    bandwidth, physical = facts.speed.read_bandwidth, facts.cores.physical or 0
    if bandwidth > _ONE_CHANNEL or min(facts.cores.threads, physical) < _CORES_OF_TWO_CHANNELS:
        return None
    return Advice(
        topic="memory-channel",
        finding=f"{facts.cores.threads} threads read {bandwidth / 1e9:.0f} GB/s, which one channel of memory gives",
        remedy="A second module in the other channel may double that; plain decoding then is nearly twice as fast.",
    )


MACHINE_RULES: tuple[Rule, ...] = (
    warn_of_emulation,
    warn_of_forced_instructions,
    warn_of_slow_instructions,
    warn_of_quota,
    warn_of_shared_cores,
    warn_of_load,
    warn_of_memory_nodes,
    warn_of_governor,
    warn_of_small_pages,
    warn_of_swap,
    warn_of_one_channel,
)
