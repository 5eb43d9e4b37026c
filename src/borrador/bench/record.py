"""A benchmark in a file: on what machine, with which models, how it was set up, every answer, and what follows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from borrador.bench.files import write_whole
from borrador.bench.prompts import Start
from borrador.bench.row_cost import RowCosts
from borrador.bench.runs import Count, Pair
from borrador.bench.score.scoring import Score
from borrador.bench.summary import Summary
from borrador.config import DraftWeights
from borrador.errors import UsageError

SCHEMA: Literal["borrador-bench"] = "borrador-bench"
VERSION: Literal[1] = 1
_LARGEST_BYTES = 256 * 2**20
_HINT = "Make one: borrador bench --save FILE.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What it ran on.

    Attributes:
        cpu: the processor's name.
        cores: that the process might use.
        threads: that the target used.
        isa: the instruction set of the kernels.
        memory_bytes: of the machine; None where the system does not tell.
        os: name and version.
    """

    cpu: str
    cores: Count
    threads: Count
    isa: str
    memory_bytes: Count | None
    os: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFile:
    """A GGUF file: its name without folders, and what it holds."""

    name: str
    bytes: Count
    sha256: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Versions:
    """Of the programs that matter to speed."""

    borrador: str
    python: str
    numpy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How it was set up.

    Attributes:
        draft: drafters by name, `auto` resolved; models by the names of their files.
        draft_tokens: drafted each round; None leaves it to measured costs.
        draft_shortlist: as `EngineConfig.draft_shortlist`.
        draft_weights: as `EngineConfig.draft_weights`; older records have none, and weights were as in the file.
        history: whether drafts came from earlier answers on this disk.
        profile: whether what earlier runs had learnt of costs and drafters was known.
        context: the most tokens of prompt and answer together.
        max_tokens: of an answer.
        temperature: 0 is greedy.
        seed: None draws afresh.
        repeats: how often each prompt was answered in both ways.
        start: what drafters knew when they met a prompt. `carried`: what the prompts before it had taught. `cold`:
            nothing. `warm`: what other prompts had taught, those of `warm_up_prompts`, and nothing else.
        prompts: name of the file they come from, without folders.
        per_task: the most prompts of a task; None is all.
        warm_up_prompts: ids of prompts that were answered to learn from, and not measured.
    """

    draft: tuple[str, ...]
    draft_tokens: Count | None
    draft_shortlist: Count | None
    history: bool
    profile: bool
    context: Count
    max_tokens: Count
    temperature: float
    seed: int | None
    repeats: Annotated[int, Meta(ge=1)]
    start: Start
    prompts: str
    per_task: Count | None
    warm_up_prompts: tuple[str, ...]
    draft_weights: DraftWeights = "file"

    @property
    def compares_answers(self) -> bool:
        """Both answers to a prompt must be equal; without a seed they are draws."""
        return self.temperature == 0.0 or self.seed is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A whole benchmark. `from_json(to_json(record)) == record`.

    Attributes:
        date: when it ended, as ISO 8601 with the offset from UTC.
        draft_models: of those that drafted.
        row_costs: T(m) of the target on this machine; None where it was not measured.
        pairs: in the order in which they were measured.
        summary: what follows from them.
        score: which answers passed their tests; None where that was not asked.
    """

    schema: Literal["borrador-bench"] = SCHEMA
    version: Literal[1] = VERSION
    date: str
    versions: Versions
    machine: Machine
    model: ModelFile
    draft_models: tuple[ModelFile, ...]
    settings: Settings
    row_costs: RowCosts | None
    pairs: tuple[Pair, ...]
    summary: Summary
    score: Score | None = None

    def to_json(self) -> str:
        """One JSON document with the fields' names; rounds and intervals are arrays. Numbers are not rounded."""
        return msgspec.json.encode(self).decode()

    @classmethod
    def from_json(cls, content: str | bytes, source: str = "the record") -> Record:
        """What `to_json` gave.

        Args:
            content: the document.
            source: what to call it in an error.

        Raises:
            UsageError: it is damaged, incomplete, of a newer version, or something else.
        """
        _require_version(content, source)
        try:
            return msgspec.json.decode(content, type=cls)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise UsageError(
                f"{source} must be a benchmark of `borrador bench --save`, and it is damaged: {_sentence(error)}",
                "Save it again.",
            ) from error

    @classmethod
    def read(cls, path: Path) -> Record:
        """A saved record. Raises UsageError as `from_json`, and where the file cannot be read."""
        try:
            with path.open("rb") as file:
                content = file.read(_LARGEST_BYTES + 1)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not a file name"
            raise UsageError(f"the record {path!s:.80} cannot be read: {reason}", "Check the file's name.") from error
        if len(content) > _LARGEST_BYTES:
            raise UsageError(f"a record may have at most {_LARGEST_BYTES} bytes, {path} has more", "Check the file.")
        return cls.from_json(content, str(path))

    def save(self, path: Path) -> None:
        """Write it whole or not at all.

        Raises:
            BorradorError: the system refuses.
        """
        write_whole(path, self.to_json() + "\n")


def _require_version(content: str | bytes, source: str) -> None:
    """Say of a file of another kind or a newer version that it is one, and not which field is missing in it."""
    try:
        head: Any = msgspec.json.decode(content)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise UsageError(f"{source} must be JSON, and is not: {_sentence(error)}", _HINT) from error
    if not isinstance(head, dict) or head.get("schema") != SCHEMA:
        raise UsageError(f"{source} must be a benchmark of `borrador bench --save`, and is none", _HINT)
    version = head.get("version")
    if isinstance(version, int) and version > VERSION:
        raise UsageError(
            f"{source} must have at most the version {VERSION} of records, it has {version}", "Update borrador."
        )


def _sentence(error: BaseException) -> str:
    text = str(error).rstrip(".") or type(error).__name__
    return text if text[1:2].isupper() else text[:1].lower() + text[1:]
