"""From pairs of answers to the numbers of a benchmark. Speeds count decoding only; the prompt has its own number."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from borrador.bench.runner import Pair
from borrador.types import GenerationStats


@dataclass(frozen=True, slots=True)
class Speed:
    """Decoding speed of the same prompts in both ways, in tokens per second."""

    prompts: int
    plain_tok_s: float
    spec_tok_s: float

    @property
    def speedup(self) -> float:
        return _ratio(self.spec_tok_s, self.plain_tok_s)

    @classmethod
    def of(cls, pairs: Sequence[Pair]) -> Speed:
        """All decoded tokens of the pairs divided by all their decoding time, so that long answers weigh more."""
        plain = tuple(pair.plain.stats for pair in pairs)
        speculative = tuple(pair.speculative.stats for pair in pairs)
        return cls(len(pairs), _tokens_per_second(plain), _tokens_per_second(speculative))

    def as_json(self) -> dict[str, float]:
        return {
            "plain_tok_s": round(self.plain_tok_s, 3),
            "spec_tok_s": round(self.spec_tok_s, 3),
            "speedup": round(self.speedup, 4),
        }


@dataclass(frozen=True, slots=True)
class Report:
    """A whole benchmark.

    Attributes:
        total: speed over all prompts.
        per_task: speed by task, in the order in which tasks first appear.
        tokens_per_pass: committed tokens / target passes of the speculative runs.
        acceptance: accepted / tested draft tokens; None where none was tested.
        prefill_tok_s: prompt tokens evaluated per second, over the runs that found less than half of their prompt in
            the cache. The second run of a pair finds it there.
        identical: prompts whose token ids are equal in both runs.
    """

    total: Speed
    per_task: dict[str, Speed]
    tokens_per_pass: float
    acceptance: float | None
    prefill_tok_s: float
    identical: int

    @property
    def prompts(self) -> int:
        return self.total.prompts

    def as_json(self) -> dict[str, Any]:
        return {
            **self.total.as_json(),
            "tokens_per_pass": round(self.tokens_per_pass, 4),
            "acceptance": None if self.acceptance is None else round(self.acceptance, 4),
            "prefill_tok_s": round(self.prefill_tok_s, 3),
            "prompts": self.prompts,
            "identical": self.identical,
            "per_task": {task: speed.as_json() for task, speed in self.per_task.items()},
        }


def summarise(pairs: Sequence[Pair]) -> Report:
    """The report of these pairs; all zeros where there are none."""
    speculative = tuple(pair.speculative.stats for pair in pairs)
    tested = sum(stats.draft_tokens_tested for stats in speculative)
    return Report(
        total=Speed.of(pairs),
        per_task={task: Speed.of(members) for task, members in _by_task(pairs).items()},
        tokens_per_pass=_ratio(_tokens(speculative), sum(stats.target_passes for stats in speculative)),
        acceptance=sum(stats.draft_tokens_accepted for stats in speculative) / tested if tested else None,
        prefill_tok_s=_prefill_speed((*speculative, *(pair.plain.stats for pair in pairs))),
        identical=sum(pair.identical for pair in pairs),
    )


def describe_divergence(pairs: Iterable[Pair]) -> str | None:
    """One sentence about the first pair whose answers differ; None where all are identical."""
    for pair in pairs:
        if (index := pair.first_divergence) is not None:
            plain, speculative = (_token_at(answer.token_ids, index) for answer in (pair.plain, pair.speculative))
            return (
                f"speculative decoding must not change an answer, but prompt {pair.prompt.id} differs at token {index}:"
                f" plain {plain}, speculative {speculative}"
            )
    return None


def _token_at(token_ids: Sequence[int], index: int) -> str:
    return str(token_ids[index]) if index < len(token_ids) else "ended"


def _by_task(pairs: Iterable[Pair]) -> dict[str, list[Pair]]:
    tasks: dict[str, list[Pair]] = {}
    for pair in pairs:
        tasks.setdefault(pair.prompt.task, []).append(pair)
    return tasks


def _tokens(runs: Iterable[GenerationStats]) -> int:
    return sum(stats.completion_tokens for stats in runs)


def _tokens_per_second(runs: Sequence[GenerationStats]) -> float:
    """Without each answer's first token, which comes from the prompt's pass."""
    return _ratio(sum(max(stats.completion_tokens - 1, 0) for stats in runs), sum(stats.decode_s for stats in runs))


def _prefill_speed(runs: Sequence[GenerationStats]) -> float:
    cold = [stats for stats in runs if 2 * stats.prompt_tokens_cached < stats.prompt_tokens]
    evaluated = sum(stats.prompt_tokens - stats.prompt_tokens_cached for stats in cold)
    return _ratio(evaluated, sum(stats.prefill_s for stats in cold))


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
