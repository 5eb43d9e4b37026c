"""What a benchmark ran on and how it was set up, as terms and what they are."""

from __future__ import annotations

from collections.abc import Sequence

from borrador.bench.page.numbers import NOTHING, Places
from borrador.bench.page.tables import Cell
from borrador.bench.record import ModelFile, Record

Detail = tuple[str, Sequence[Cell]]


def describe_machine(record: Record, places: Places) -> list[Detail]:
    machine, versions = record.machine, record.versions
    details: list[Detail] = [
        ("Processor", (machine.cpu,)),
        ("Cores", (places.number("count", "machine", "cores"),)),
        ("Threads", (places.number("count", "machine", "threads"),)),
        ("Instruction set", (machine.isa,)),
        ("Memory", (places.number("gibibytes", "machine", "memory_bytes"),)),
        ("System", (machine.os,)),
        ("Versions", (f"borrador {versions.borrador}, Python {versions.python}, NumPy {versions.numpy}",)),
    ]
    if record.row_costs is not None:
        details += [
            ("Memory bandwidth", (places.number("gigabytes_per_second", "row_costs", "read_bandwidth"),)),
            ("Integer peak", (places.number("gigaproducts_per_second", "row_costs", "integer_peak"),)),
            ("Weights of a pass", (places.number("megabytes", "row_costs", "weights_bytes"),)),
            ("Products of a row", (places.number("millions", "row_costs", "row_macs"),)),
        ]
    return details


def describe_models(record: Record, places: Places) -> list[Detail]:
    """The target first."""
    details = _describe_model("Target", record.model, places, "model")
    for index, model in enumerate(record.draft_models):
        details += _describe_model("Draft model", model, places, "draft_models", index)
    return details


def _describe_model(role: str, model: ModelFile, places: Places, *steps: str | int) -> list[Detail]:
    return [(role, (model.name, places.number("megabytes", *steps, "bytes"))), ("SHA-256", (model.sha256,))]


def describe_settings(record: Record, places: Places) -> list[Detail]:
    settings = record.settings
    length = places.number("count", "settings", "draft_tokens")
    return [
        ("Drafters", (", ".join(settings.draft) or NOTHING,)),
        ("Draft length", ("by measured costs" if length.value is None else length,)),
        ("Shortlist of draft tokens", (places.number("count", "settings", "draft_shortlist"),)),
        ("Weights of draft models", (settings.draft_weights,)),
        ("History", (_yes(settings.history),)),
        ("Profile of earlier runs", (_yes(settings.profile),)),
        ("Drafters start", (settings.start,)),
        ("Longest answer", (places.number("count", "settings", "max_tokens"), "tokens")),
        ("Context", (places.number("count", "settings", "context"), "tokens")),
        ("Temperature", (places.number("plain", "settings", "temperature"),)),
        ("Seed", (places.number("plain", "settings", "seed"),)),
        ("Prompts", (settings.prompts,)),
        ("Repeats", (places.number("count", "settings", "repeats"),)),
        ("Prompt tokens read", (places.number("tokens_per_second", "summary", "prefill_tok_s"), "tok/s")),
    ]


def _yes(value: bool) -> str:
    return "yes" if value else "no"
