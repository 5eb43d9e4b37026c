"""What `borrador doctor` found, in lines for people."""

from __future__ import annotations

from borrador.cli.output import counted
from borrador.doctor.facts import Facts, Folder, ModelFile, Trial
from borrador.doctor.model_rules import fits
from borrador.extras import EXTRAS

_UNKNOWN = "not known here"


def readable(facts: Facts) -> list[tuple[str, str]]:
    """Labels and texts; of models and folders a line each, under one label."""
    lines = [
        ("processor", _processor(facts)),
        ("instructions", _instructions(facts)),
        ("threads", _threads(facts)),
        ("memory", _memory(facts)),
        ("huge pages", _huge_pages(facts)),
        *([("speed", _speed(facts))] if facts.speed is not None else []),
        *_labelled("models", [_model(model, facts) for model in facts.models] or ["none on this disk"]),
        *([("tried", _trial(facts.trial))] if facts.trial is not None else []),
        *_labelled("folders", [_folder(folder) for folder in facts.folders]),
        ("software", _software(facts)),
        ("extras", _extras(facts)),
    ]
    if facts.software.drafters:
        lines.append(("drafters", ", ".join(facts.software.drafters)))
    return lines


def _labelled(label: str, texts: list[str]) -> list[tuple[str, str]]:
    return [(label if index == 0 else "", text) for index, text in enumerate(texts)]


def _processor(facts: Facts) -> str:
    processor = facts.processor
    kind = "emulated" if processor.emulated else "virtual" if processor.virtual else ""
    parts = [processor.name, processor.architecture, kind, ", ".join(processor.features)]
    return "; ".join(part for part in parts if part)


def _instructions(facts: Facts) -> str:
    processor = facts.processor
    others = ", ".join(name for name in processor.available if name != processor.used)
    if processor.used is None:
        return f"none: BORRADOR_ISA is {processor.forced!r}, and here are {others}"
    why = "by BORRADOR_ISA" if processor.forced else "the fastest"
    unused = "; AMX is here and not used" if "AMX" in processor.features else ""
    return f"{processor.used}, {why}{f'; {others} are here too' if others else ''}{unused}"


def _threads(facts: Facts) -> str:
    cores = facts.cores
    parts = [f"{cores.threads}; of {counted(cores.logical, 'processor')} this process may use {cores.allowed}"]
    if cores.physical is not None:
        parts.append(f"on {counted(cores.physical, 'physical core')}")
    if cores.quota is not None:
        parts.append(f"and {cores.quota:g} processors' worth of time")
    if cores.load is not None:
        parts.append(f"(load {cores.load:.1f})")
    return " ".join(parts)


def _memory(facts: Facts) -> str:
    memory = facts.memory
    parts = [
        f"{_gigabytes(memory.total_bytes)}, free {_gigabytes(memory.free_bytes)}",
        *([f"limit of the container {_gigabytes(memory.limit_bytes)}"] if memory.limit_bytes is not None else []),
    ]
    if memory.swap_bytes:
        parts.append(f"swap {_gigabytes(memory.swap_bytes)}, of which {_gigabytes(memory.swap_used_bytes)} in use")
    return "; ".join(parts)


def _huge_pages(facts: Facts) -> str:
    memory = facts.memory
    if memory.huge_pages is None:
        return _UNKNOWN
    got = "" if memory.huge_share is None else f"; {memory.huge_share:.0%} of a block that asked for them got them"
    return f"{memory.huge_pages}{got}"


def _speed(facts: Facts) -> str:
    if facts.speed is None:
        return _UNKNOWN
    return (
        f"{facts.speed.read_bandwidth / 1e9:.1f} GB/s read from memory, {facts.speed.integer_peak / 1e9:.0f} G products"
        f" a second, with {counted(facts.cores.threads, 'thread')}"
    )


def _model(model: ModelFile, facts: Facts) -> str:
    fitting = {True: "fits into memory", False: "does not fit into memory", None: ""}[fits(model, facts)]
    state = fitting if model.whole else "damaged"
    plan = f"plan: {', '.join(model.planned)}" if model.planned else "no plan"
    return "; ".join(part for part in (f"{model.name}, {model.file_bytes / 1e6:.0f} MB", state, plan) if part)


def _trial(trial: Trial) -> str:
    pages = "" if trial.huge_share is None else f", {trial.huge_share:.0%} of the weights in 2 MiB pages"
    learnt = "costs are known from earlier" if trial.profile else "nothing learnt of it yet"
    return (
        f"{trial.model} loaded in {trial.load_s:.1f} s{pages}; a pass over one row takes {trial.pass_s * 1e3:.1f} ms,"
        f" the limit here is {trial.limit_s * 1e3:.1f} ms; {learnt}"
    )


def _folder(folder: Folder) -> str:
    state = "" if folder.exists else ", not there yet"
    closed = "" if folder.writable else ", cannot be written"
    free = "" if folder.disk_free_bytes is None else f", {_gigabytes(folder.disk_free_bytes)} free"
    return f"{folder.path} ({folder.purpose}): {folder.used_bytes / 1e6:.1f} MB{free}{state}{closed}"


def _software(facts: Facts) -> str:
    software = facts.software
    packages = ", ".join(f"{name} {version}" for name, version in software.packages.items())
    return f"borrador {software.borrador}, {software.python}, {software.system}; {packages}"


def _extras(facts: Facts) -> str:
    missing = facts.software.missing_extras
    states = {extra: f"lacks {', '.join(missing[extra])}" if extra in missing else "is complete" for extra in EXTRAS}
    return "; ".join(f"borrador[{extra}] {state}" for extra, state in states.items())


def _gigabytes(count: int | None) -> str:
    return _UNKNOWN if count is None else f"{count / 1e9:.1f} GB"
