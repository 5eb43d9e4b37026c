"""All facts of this machine, put together."""

from __future__ import annotations

from pathlib import Path

from borrador import _native
from borrador.doctor.disk import examine_folders, examine_model, examine_models
from borrador.doctor.facts import Facts, ModelFile, Processor, Speed, Trial
from borrador.doctor.memory import examine_memory
from borrador.doctor.processor import examine_cores, examine_processor
from borrador.doctor.software import examine_software
from borrador.doctor.speed import measure_speed
from borrador.doctor.system import System
from borrador.doctor.trial import try_model
from borrador.errors import BorradorError
from borrador.models.catalogue import CATALOGUE
from borrador.models.weights import default_threads


def examine(model: str | None = None, path: Path | None = None, system: System | None = None) -> Facts:
    """Look at the machine, which takes a second, and try a model on it.

    Args:
        model: its name, to try one.
        path: the file of that model.
        system: where the machine describes itself.

    Raises:
        BorradorError: no home folder is known, or memory is too short for measuring.
    """
    system = system or System()
    processor = examine_processor(system, tuple(_native.available_isas()))
    cores, memory = examine_cores(system, default_threads()), examine_memory(system)
    isa = processor.used or processor.available[-1]
    speed = measure_speed(cores.threads, isa, memory.free_bytes)
    asked = None if model is None or path is None else examine_model(path, model, isa, cores.threads)
    trial, obstacle = _try(asked, processor, speed, system)
    return Facts(
        processor=processor,
        cores=cores,
        memory=memory,
        software=examine_software(),
        speed=speed,
        folders=examine_folders(),
        models=_with(asked, examine_models(isa, cores.threads)),
        trial=trial,
        obstacle=obstacle,
    )


def _try(
    asked: ModelFile | None, processor: Processor, speed: Speed, system: System
) -> tuple[Trial | None, str | None]:
    if asked is None or processor.used is None:
        return None, None
    try:
        return try_model(asked, speed, system), None
    except BorradorError as error:
        return None, str(error)


def _with(asked: ModelFile | None, models: tuple[ModelFile, ...]) -> tuple[ModelFile, ...]:
    """Those of the models folder, and a file from elsewhere."""
    if asked is None or asked.name in CATALOGUE or any(model.path == asked.path for model in models):
        return models
    return (*models, asked)
