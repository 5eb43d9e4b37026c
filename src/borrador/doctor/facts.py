"""What is known of a machine. What cannot be found out there is None."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Processor:
    """The processor and what the engine makes of it.

    Attributes:
        name: as the system gives it.
        architecture: as Python was built for, such as x86_64.
        features: instruction-set extensions of interest that the system reports, by the names in `processor.FEATURES`.
        available: instruction sets the engine can use here, slowest first.
        forced: what `BORRADOR_ISA` says; empty where it says nothing.
        virtual: it is a virtual machine's.
        emulated: its instructions are translated for another processor.
    """

    name: str
    architecture: str
    features: tuple[str, ...] = ()
    available: tuple[str, ...]
    forced: str = ""
    virtual: bool | None = None
    emulated: bool = False

    @property
    def used(self) -> str | None:
        """The instruction set of models that are loaded now; None where `forced` is none that can be used."""
        wanted = self.forced or self.available[-1]
        return wanted if wanted in self.available else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cores:
    """What runs threads.

    Attributes:
        logical: processors that the system sees.
        physical: cores behind those that this process may use.
        allowed: processors that this process may use by its affinity.
        quota: processors' worth of time that a cgroup allows.
        threads: what the engine uses where `--threads` is not given.
        load: threads that wanted to run, over the last minute.
        memory_nodes: NUMA nodes with memory.
        governor: of the processor's frequency.
        frequency_driver: that the governor steers.
        energy_preference: for processors that choose their own frequency.
    """

    logical: int
    physical: int | None = None
    allowed: int
    quota: float | None = None
    threads: int
    load: float | None = None
    memory_nodes: int | None = None
    governor: str | None = None
    frequency_driver: str | None = None
    energy_preference: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Main memory, in bytes.

    Attributes:
        total_bytes: of the machine.
        free_bytes: to be had without swapping, within the cgroup's limit.
        limit_bytes: a cgroup's limit.
        swap_bytes: room for swapping.
        swap_used_bytes: of it in use.
        huge_pages: when the system gives 2 MiB pages: `always`, `madvise` or `never`.
        huge_share: of a block that asked for them, the share that got them.
    """

    total_bytes: int | None = None
    free_bytes: int | None = None
    limit_bytes: int | None = None
    swap_bytes: int | None = None
    swap_used_bytes: int | None = None
    huge_pages: str | None = None
    huge_share: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """What the engine's threads reach at best.

    Attributes:
        read_bandwidth: bytes a second read from memory.
        integer_peak: products of bytes a second, without touching memory.
    """

    read_bandwidth: float
    integer_peak: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """A folder where files are kept. `writable` also where it does not exist yet and can be made."""

    purpose: str
    path: Path
    exists: bool
    writable: bool
    used_bytes: int
    disk_free_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFile:
    """A model on disk.

    Attributes:
        name: in the catalogue, or its path.
        path: of the file.
        file_bytes: its size, about what its weights take in memory.
        whole: its size is the catalogue's; True for other files.
        planned: drafters that `borrador plan` found best for it here; empty where it has not been planned.
    """

    name: str
    path: Path
    file_bytes: int
    whole: bool
    planned: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One model, loaded and tried.

    Attributes:
        model: its name.
        load_s: seconds that loading took.
        weights_bytes: read by a pass.
        huge_share: of the weights, the share in 2 MiB pages.
        pass_s: seconds of a pass over one row, the median.
        limit_s: below which it cannot fall here.
        profile: what was learnt of it is on disk.
    """

    model: str
    load_s: float
    weights_bytes: int
    huge_share: float | None
    pass_s: float
    limit_s: float
    profile: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Software:
    """Versions, and the optional packages that are not installed, by extra."""

    borrador: str
    python: str
    system: str
    packages: dict[str, str]
    missing_extras: dict[str, tuple[str, ...]]
    drafters: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Everything `borrador doctor` looks at.

    Attributes:
        obstacle: why the model that was asked about cannot be tried; None where it can, or none was asked about.
    """

    processor: Processor
    cores: Cores
    memory: Memory
    software: Software
    speed: Speed | None = None
    folders: tuple[Folder, ...] = ()
    models: tuple[ModelFile, ...] = ()
    trial: Trial | None = None
    obstacle: str | None = None

    def as_json(self) -> dict[str, Any]:
        facts = asdict(self)
        facts["processor"]["used"] = self.processor.used
        for entry in (*facts["folders"], *facts["models"]):
            entry["path"] = str(entry["path"])
        return facts
