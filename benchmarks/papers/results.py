"""What was measured, as docs/papers.json keeps it."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

from borrador import __version__
from borrador.bench.files import write_whole
from borrador.doctor.processor import examine_processor
from borrador.doctor.system import System
from borrador.models.weights import default_isa

PLAIN = "none"
TARGET, DRAFT, OTHER = "qwen2.5-coder-1.5b", "qwen2.5-coder-0.5b", "smollm2-135m"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Rounds of one answer, without the first, which belongs to the prompt. Seconds are sums over the rounds.

    Attributes:
        part: of the measurement; only answers of one part were written in turn.
        draft: name of the draft; `none` is plain decoding.
        gamma: draft length.
        tokens: committed.
        tested, accepted: draft tokens by their place in the draft.
    """

    part: str
    draft: str
    gamma: int
    temperature: float
    prompt: str
    rounds: int
    tokens: int
    tested: tuple[int, ...]
    accepted: tuple[int, ...]
    draft_s: float
    pass_s: float
    beside_s: float

    @property
    def seconds(self) -> float:
        return self.draft_s + self.pass_s + self.beside_s

    @property
    def task(self) -> str:
        return task_of(self.prompt)


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """Costs, measured between the rounds of the answers to one prompt: medians.

    Attributes:
        pass_s: seconds of the target's pass over 1, 2, ... rows.
        step_s: by draft, seconds for a draft token.
    """

    part: str
    temperature: float
    prompt: str
    pass_s: tuple[float, ...]
    step_s: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """α of a draft by the distributions: over the tokens of one answer of the target's.

    Attributes:
        tokens: how many.
        alpha: at temperature 0 the share of tokens that are both models' likeliest, else the mean of sum of min(p, q).
    """

    draft: str
    temperature: float
    prompt: str
    tokens: int
    alpha: float

    @property
    def task(self) -> str:
        return task_of(self.prompt)


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """Factors of arithmetic and speed of rounds that were played without a model, where drafting costs nothing."""

    alpha: float
    gamma: int
    operations: float
    speed: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A model by its file.

    Attributes:
        file_bytes: size of the GGUF file.
        weights_bytes: that a pass reads.
        row_macs: multiply-accumulates that a row takes in the matrices.
    """

    layers: int
    file_bytes: int
    weights_bytes: int
    row_macs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """Everything that docs/papers.md is made of.

    Attributes:
        setups: where and when each part was measured, or the last piece of it.
    """

    setups: Mapping[str, Mapping[str, str]]
    models: Mapping[str, Model]
    answers: tuple[Answer, ...] = ()
    probes: tuple[Probe, ...] = ()
    acceptance: tuple[Acceptance, ...] = ()
    simulated: tuple[Simulated, ...] = ()

    def with_more(
        self,
        part: str,
        answers: Iterable[Answer] = (),
        probes: Iterable[Probe] = (),
        acceptance: Iterable[Acceptance] = (),
        simulated: Iterable[Simulated] = (),
        models: Mapping[str, Model] | None = None,
    ) -> Results:
        """With further measurements of a part; those of the same thing are replaced."""
        return replace(
            self,
            setups={**self.setups, part: this_setup()},
            models={**self.models, **(models or {})},
            answers=_merged(self.answers, answers, "part", "draft", "gamma", "temperature", "prompt"),
            probes=_merged(self.probes, probes, "part", "temperature", "prompt"),
            acceptance=_merged(self.acceptance, acceptance, "draft", "temperature", "prompt"),
            simulated=_merged(self.simulated, simulated, "alpha", "gamma"),
        )


def task_of(prompt: str) -> str:
    """What kind of prompt an id stands for."""
    return prompt.rsplit("-", 1)[0]


def this_setup() -> dict[str, str]:
    """Where and when."""
    return {
        "date": date.today().isoformat(),
        "processor": examine_processor(System(), ()).name,
        "cores": str(len(os.sched_getaffinity(0))),
        "kernels": default_isa(),
        "borrador": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def read(path: Path) -> Results:
    """The results in a file; none where there is no file."""
    if not path.exists():
        return Results(setups={}, models={})
    stored = json.loads(path.read_text("utf-8"))
    return Results(
        setups=stored["setups"],
        models={name: Model(**each) for name, each in stored["models"].items()},
        answers=tuple(
            Answer(**{**each, "tested": tuple(each["tested"]), "accepted": tuple(each["accepted"])})
            for each in stored["answers"]
        ),
        probes=tuple(Probe(**{**each, "pass_s": tuple(each["pass_s"])}) for each in stored["probes"]),
        acceptance=tuple(Acceptance(**each) for each in stored["acceptance"]),
        simulated=tuple(Simulated(**each) for each in stored["simulated"]),
    )


def write(results: Results, path: Path) -> None:
    """Save results, one measurement a line, the file whole or not at all."""
    parts = [_block("setups", results.setups)]
    parts.append(_block("models", {name: asdict(model) for name, model in results.models.items()}))
    parts += [_lines(name, getattr(results, name)) for name in ("simulated", "acceptance", "probes", "answers")]
    write_whole(path, "{\n" + ",\n".join(parts) + "\n}\n")


def _block(name: str, entries: Mapping[str, Mapping[str, Any]]) -> str:
    lines = ",\n".join(f'"{key}": {json.dumps(entry)}' for key, entry in entries.items())
    return f'"{name}": {{\n{lines}\n}}'


def _lines(name: str, entries: Iterable[Any]) -> str:
    lines = ",\n".join(json.dumps(_rounded(asdict(entry))) for entry in entries)
    return f'"{name}": [\n{lines}\n]'


def _rounded(value: Any) -> Any:
    """The same with five decimals: hundredths of a millisecond."""
    if isinstance(value, dict):
        return {key: _rounded(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(each) for each in value]
    return round(value, 5) if isinstance(value, float) else value


def _merged(old: Iterable[Any], new: Iterable[Any], *key: str) -> tuple[Any, ...]:
    known = {tuple(getattr(entry, name) for name in key): entry for entry in (*old, *new)}
    return tuple(known[each] for each in sorted(known))
