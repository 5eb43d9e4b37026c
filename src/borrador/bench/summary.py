"""From pairs of answers to the numbers of a benchmark."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from borrador.bench.runs import Count, DrafterFigures, Pair, Run, Seconds, together
from borrador.bench.statistics import Interval, median_interval, median_of_known

Speed = Callable[[Run], float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """Of prompts, each with one value: their median, and the interval that holds it with 95 % confidence.

    The value of a prompt that was answered several times is the median of its own. `interval` is None for one prompt.
    """

    median: float
    interval: Interval | None

    @classmethod
    def of(cls, values: Sequence[float]) -> Ratio | None:
        """None where there are none."""
        return cls(median=statistics.median(values), interval=median_interval(values)) if values else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Speeds:
    """Of the same prompts in both ways: all tokens divided by all seconds, so that long answers weigh more.

    Attributes:
        speedup: spec_tok_s / plain_tok_s; 0 where nothing was measured.
        paired: the same of each prompt, where all weigh alike; None where nothing was measured.
    """

    plain_tok_s: float
    spec_tok_s: float
    speedup: float
    paired: Ratio | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSummary:
    """The prompts of a task, or all.

    Attributes:
        decode: without the prompt's own pass and the first token that it gives.
        end_to_end: prefill and decoding. No run finds anything of its prompt in a cache.
        tokens_per_pass: committed tokens / target passes, of the speculative runs.
        acceptance: accepted / tested draft tokens; None where none was tested.
        identical: prompts whose token ids are equal in both runs, every time; None where they are draws.
    """

    prompts: Count
    decode: Speeds
    end_to_end: Speeds
    tokens_per_pass: float
    acceptance: float | None
    identical: Count | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeSplit:
    """Seconds of decoding, by what they were spent on."""

    draft_s: Seconds
    forward_s: Seconds
    sample_s: Seconds
    other_s: Seconds

    @property
    def total_s(self) -> float:
        return self.draft_s + self.forward_s + self.sample_s + self.other_s

    @classmethod
    def of(cls, runs: Sequence[Run]) -> TimeSplit:
        draft_s, forward_s, sample_s = (
            sum(getattr(run, name) for run in runs) for name in ("draft_s", "forward_s", "sample_s")
        )
        rest = sum(run.decode_s for run in runs) - draft_s - forward_s - sample_s
        return cls(draft_s=draft_s, forward_s=forward_s, sample_s=sample_s, other_s=max(rest, 0.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Extreme:
    """A prompt and its speed-up in decoding."""

    prompt: str
    task: str
    speedup: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergence:
    """The first pair whose answers differ. A token is None where its answer had ended."""

    prompt: str
    repeat: Count
    index: Count
    plain: Count | None
    speculative: Count | None

    @classmethod
    def of(cls, pairs: Iterable[Pair]) -> Divergence | None:
        """None where all are identical."""
        for pair in pairs:
            if (index := pair.first_divergence) is not None:
                plain, speculative = (
                    run.token_ids[index] if index < len(run.token_ids) else None
                    for run in (pair.plain, pair.speculative)
                )
                return cls(prompt=pair.prompt, repeat=pair.repeat, index=index, plain=plain, speculative=speculative)
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A whole benchmark.

    Attributes:
        per_task: in the order in which tasks first appear.
        drafters: acceptance by position, of the speculative runs.
        plain_time: of decoding.
        spec_time: of decoding.
        prefill_tok_s: prompt tokens evaluated per second.
        worst: the prompt that speculation served least; None where nothing was decoded.
        first_divergence: None where all answers are identical, or draws.
    """

    total: TaskSummary
    per_task: dict[str, TaskSummary]
    drafters: tuple[DrafterFigures, ...]
    plain_time: TimeSplit
    spec_time: TimeSplit
    prefill_tok_s: float
    worst: Extreme | None
    first_divergence: Divergence | None


def summarise(pairs: Sequence[Pair], *, compared: bool = True) -> Summary:
    """The summary of these pairs.

    Args:
        pairs: of every prompt, in the order in which they were measured.
        compared: answers must be equal; otherwise they are draws, and nothing is said of it.
    """
    plain, speculative = [pair.plain for pair in pairs], [pair.speculative for pair in pairs]
    return Summary(
        total=_summarise_task(pairs, compared=compared),
        per_task={task: _summarise_task(members, compared=compared) for task, members in _by_task(pairs).items()},
        drafters=together(each for run in speculative for each in run.drafters),
        plain_time=TimeSplit.of(plain),
        spec_time=TimeSplit.of(speculative),
        prefill_tok_s=_prefill_speed([*plain, *speculative]),
        worst=_worst(pairs),
        first_divergence=Divergence.of(pairs) if compared else None,
    )


def by_prompt(pairs: Iterable[Pair]) -> dict[str, list[Pair]]:
    """The pairs of each prompt, in the order in which prompts first appear."""
    found: dict[str, list[Pair]] = {}
    for pair in pairs:
        found.setdefault(pair.prompt, []).append(pair)
    return found


def decode_speed(run: Run) -> float | None:
    return run.decode_tok_s


def total_speed(run: Run) -> float | None:
    return run.total_tok_s


def speedup_of(pairs: Iterable[Pair], speed: Speed = decode_speed) -> float | None:
    """Of one prompt: the median of its pairs; None where nothing was measured."""
    known = ((speed(pair.speculative), speed(pair.plain)) for pair in pairs)
    return median_of_known(speculative / plain for speculative, plain in known if speculative and plain)


def ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _summarise_task(pairs: Sequence[Pair], *, compared: bool) -> TaskSummary:
    prompts, speculative = by_prompt(pairs), [pair.speculative for pair in pairs]
    tested = sum(sum(each.tested) for run in speculative for each in run.drafters)
    accepted = sum(sum(each.accepted) for run in speculative for each in run.drafters)
    identical = sum(all(pair.identical for pair in members) for members in prompts.values())
    return TaskSummary(
        prompts=len(prompts),
        decode=_speeds(pairs, decode_speed, lambda run: run.tokens_decoded, lambda run: run.decode_s),
        end_to_end=_speeds(pairs, total_speed, lambda run: run.tokens, lambda run: run.total_s),
        tokens_per_pass=ratio(sum(run.tokens for run in speculative), sum(run.passes for run in speculative)),
        acceptance=accepted / tested if tested else None,
        identical=identical if compared else None,
    )


def _speeds(
    pairs: Sequence[Pair], speed: Speed, tokens: Callable[[Run], int], seconds: Callable[[Run], float]
) -> Speeds:
    plain, speculative = (
        ratio(sum(map(tokens, runs)), sum(map(seconds, runs)))
        for runs in ([pair.plain for pair in pairs], [pair.speculative for pair in pairs])
    )
    known = (speedup_of(members, speed) for members in by_prompt(pairs).values())
    paired = Ratio.of([value for value in known if value is not None])
    return Speeds(plain_tok_s=plain, spec_tok_s=speculative, speedup=ratio(speculative, plain), paired=paired)


def _worst(pairs: Sequence[Pair]) -> Extreme | None:
    found = [
        Extreme(prompt=prompt, task=members[0].task, speedup=speedup)
        for prompt, members in by_prompt(pairs).items()
        if (speedup := speedup_of(members)) is not None
    ]
    return min(found, key=lambda each: each.speedup, default=None)


def _by_task(pairs: Iterable[Pair]) -> dict[str, list[Pair]]:
    tasks: dict[str, list[Pair]] = {}
    for pair in pairs:
        tasks.setdefault(pair.task, []).append(pair)
    return tasks


def _prefill_speed(runs: Sequence[Run]) -> float:
    evaluated = sum(run.prompt_tokens - run.prompt_tokens_cached for run in runs)
    return ratio(evaluated, sum(run.prefill_s for run in runs))
