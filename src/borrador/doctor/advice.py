"""From facts to what stands in the way, and to what would make the engine faster."""

from __future__ import annotations

from borrador.doctor.facts import Facts
from borrador.doctor.machine_rules import MACHINE_RULES
from borrador.doctor.model_rules import MODEL_RULES
from borrador.doctor.rule import Advice


def advise(facts: Facts) -> list[Advice]:
    """What would make it faster, by the facts alone; what costs most comes first."""
    found = (rule(facts) for rule in (*MACHINE_RULES, *MODEL_RULES))
    return [advice for advice in found if advice is not None]


def find_obstacles(facts: Facts) -> list[Advice]:
    """Why nothing can be run here, or not the model that was asked about; empty where it can."""
    found: list[Advice] = []
    processor = facts.processor
    if processor.used is None:
        found.append(
            Advice(
                topic="forced-instructions",
                finding=f"BORRADOR_ISA must be one of {', '.join(processor.available)} here, got {processor.forced!r}",
                remedy="Unset it for the best one.",
            )
        )
    if facts.obstacle is not None:
        found.append(Advice(topic="model", finding=facts.obstacle, remedy="Choose another model, or repair this one."))
    return found
