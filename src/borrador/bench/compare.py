"""Two benchmarks side by side: what differs in how they were made, and how much faster the second one was."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from borrador.bench.record import Record
from borrador.bench.runs import Pair
from borrador.bench.statistics import median_of_known
from borrador.bench.summary import Ratio, Speeds, by_prompt, speedup_of, summarise
from borrador.errors import UsageError

Value = Callable[[Sequence[Pair]], float | None]


class Difference(NamedTuple):
    """A fact that two records do not share, by its name in them, as text."""

    name: str
    a: str
    b: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Prompt by prompt, b divided by a; None where nothing can be compared. Above 1, b is better."""

    plain: Ratio | None
    speculative: Ratio | None
    speedup: Ratio | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two benchmarks, by the prompts that both have.

    Attributes:
        differences: in machine, models, settings and versions.
        prompts: ids of those in both, in a's order.
        only_a: ids of prompts that b does not have.
        only_b: and the other way round.
        a: speeds of decoding of the shared prompts.
        b: the same.
        change: of them from a to b.
        identical: shared prompts whose every answer is equal in both; None where answers are draws.
        different: the first shared prompt whose answers differ.
    """

    differences: tuple[Difference, ...]
    prompts: tuple[str, ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    a: Speeds
    b: Speeds
    change: Change
    identical: int | None
    different: str | None


def compare(a: Record, b: Record) -> Comparison:
    """Compare two records.

    Raises:
        UsageError: they have no prompt in common.
    """
    of_a, of_b = by_prompt(a.pairs), by_prompt(b.pairs)
    shared = [prompt for prompt in of_a if prompt in of_b]
    if not shared:
        raise UsageError(
            "two benchmarks are compared by the prompts that both have, and these have none in common",
            "Measure both with the same --prompts.",
        )
    both = [(of_a[prompt], of_b[prompt]) for prompt in shared]
    draws = not (a.settings.compares_answers and b.settings.compares_answers)
    changed = [prompt for prompt in shared if not _equal(of_a[prompt], of_b[prompt])]
    return Comparison(
        differences=tuple(differences(a, b)),
        prompts=tuple(shared),
        only_a=tuple(prompt for prompt in of_a if prompt not in of_b),
        only_b=tuple(prompt for prompt in of_b if prompt not in of_a),
        a=_speeds(pairs for pairs, _ in both),
        b=_speeds(pairs for _, pairs in both),
        change=Change(
            plain=_change(both, _plain_speed), speculative=_change(both, _spec_speed), speedup=_change(both, speedup_of)
        ),
        identical=None if draws else len(shared) - len(changed),
        different=None if draws or not changed else changed[0],
    )


def differences(a: Record, b: Record) -> Iterator[Difference]:
    """What the records do not share of how they were made."""
    left, right = (_flatten(msgspec.to_builtins(record)) for record in (a, b))
    for name in dict.fromkeys((*left, *right)):
        if left.get(name) != right.get(name):
            yield Difference(name, left.get(name, "-"), right.get(name, "-"))


def _flatten(record: dict[str, Any]) -> dict[str, str]:
    """The facts by their names: fields of fields with dots between; a list is one fact."""
    facts = {
        f"{part}.{name}": _text(value)
        for part in ("machine", "settings", "versions")
        for name, value in record[part].items()
    }
    models = {"model": [record["model"]], "draft_models": record["draft_models"]}
    return {**{name: _text([_describe_model(each) for each in files]) for name, files in models.items()}, **facts}


def _describe_model(file: dict[str, Any]) -> str:
    return f"{file['name']} {file['sha256'][:12]}"


def _text(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "none"
    return str(value)


def _speeds(pairs: Iterable[Sequence[Pair]]) -> Speeds:
    return summarise([pair for members in pairs for pair in members]).total.decode


def _change(both: Sequence[tuple[Sequence[Pair], Sequence[Pair]]], value: Value) -> Ratio | None:
    known = ((value(pairs_a), value(pairs_b)) for pairs_a, pairs_b in both)
    return Ratio.of([of_b / of_a for of_a, of_b in known if of_a and of_b])


def _plain_speed(pairs: Sequence[Pair]) -> float | None:
    return median_of_known(pair.plain.decode_tok_s for pair in pairs)


def _spec_speed(pairs: Sequence[Pair]) -> float | None:
    return median_of_known(pair.speculative.decode_tok_s for pair in pairs)


def _equal(pairs_a: Sequence[Pair], pairs_b: Sequence[Pair]) -> bool:
    answers = {run.token_ids for pair in (*pairs_a, *pairs_b) for run in (pair.plain, pair.speculative)}
    return len(answers) == 1
