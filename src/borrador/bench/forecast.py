"""From answers that were drafted at one length to the speed-up at every length.

The time of an answer by plain decoding is its tokens times T(1). With drafts it is, over its rounds, T(1 + rows) and
what drafting takes; so with γ tokens drafted each round the speed-up is

    (1 + accepted(γ)) / ((T(1 + γ) + γ t) / T(1)),

accepted(γ) being the mean number of tokens accepted in a round and t the seconds of a drafted token. Where T does not
depend on the rows, and every token is accepted with probability α whatever happened before, this is Leviathan's
(1 - α^(γ+1)) / ((1 - α) (γ c + 1)), c = t / T(1) (arXiv 2211.17192, Theorem 3.8). Here nothing of that is assumed: what
shorter drafts would have met is read off the longer ones, drafters may have none, and trees count with all their rows.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from borrador.bench.prompts import BenchPrompt
from borrador.engine.candidates import Load
from borrador.engine.costs import RowCosts
from borrador.types import Draft, RoundRecord

LONGEST = 8  # tokens that drafters draft each round while they are looked at


@dataclass(frozen=True, slots=True)
class Trace:
    """An answer and how it was decoded.

    Attributes:
        prompt: the question.
        prompt_tokens: how long it is.
        token_ids: the answer.
        rounds: without the first, which belongs to the prompt.
    """

    prompt: BenchPrompt
    prompt_tokens: int
    token_ids: tuple[int, ...]
    rounds: tuple[RoundRecord, ...]

    @property
    def decode_s(self) -> float:
        return sum(record.total_s for record in self.rounds)

    @property
    def decoded(self) -> int:
        """Tokens that decoding wrote; the first one came out of the prompt's pass."""
        return sum(len(record.committed) for record in self.rounds)

    @property
    def load(self) -> Load:
        """Of its passes, on average."""
        return Load(context=self.prompt_tokens + len(self.token_ids) / 2)

    @property
    def pass_s(self) -> float:
        """Seconds of a typical pass; 0 where there was none."""
        return _median(record.forward_s for record in self.rounds)

    @property
    def beside_s(self) -> float:
        """What a typical round took beside drafting and the pass."""
        return _median(record.total_s - record.draft_s - record.forward_s for record in self.rounds)


class Tally(NamedTuple):
    """Decoding of some answers in one way, against plain decoding of the same.

    Attributes:
        tokens: that were decoded.
        passes: of the target.
        seconds: that it took.
        plain_s: seconds of plain decoding.
    """

    tokens: int = 0
    passes: int = 0
    seconds: float = 0.0
    plain_s: float = 0.0

    @property
    def tokens_per_pass(self) -> float:
        return self.tokens / self.passes if self.passes else 0.0

    @property
    def speedup(self) -> float:
        return self.plain_s / self.seconds if self.seconds else 0.0


class Step(NamedTuple):
    """A round as it would have been: rows drafted, tokens accepted."""

    drafted: int
    accepted: int


@dataclass(frozen=True, slots=True)
class Drafting:
    """What drafting with one drafter takes, in plain passes, but `beside_s` in seconds.

    Attributes:
        token: a drafted token: the cost ratio c.
        nothing: a round in which it had no draft.
        beside_s: the rest of a round, without the pass.
    """

    token: float
    nothing: float
    beside_s: float

    @classmethod
    def of(cls, traces: Sequence[Trace], plain: Sequence[Trace]) -> Drafting:
        """From answers of this drafter alone, and plain decoding of the same.

        The first draft of an answer does not count: the prompt is read for it.
        """
        later = [
            (len(record.draft.tokens), record.draft_s / base.pass_s)
            for trace, base in zip(traces, plain, strict=True)
            for record in _without_reading(trace)
            if base.pass_s
        ]
        return cls(
            token=_median(passes / drafted for drafted, passes in later if drafted),
            nothing=_median(passes for drafted, passes in later if not drafted),
            beside_s=_median(trace.beside_s for trace in traces),
        )

    def passes(self, drafted: int) -> float:
        return drafted * self.token if drafted else self.nothing


def total(tallies: Iterable[Tally]) -> Tally:
    """All of them as one."""
    tokens, passes, seconds, plain_s = (sum(column) for column in zip(Tally(), *tallies, strict=True))
    return Tally(int(tokens), int(passes), seconds, plain_s)


def tally(trace: Trace, plain: Trace) -> Tally:
    """What was measured."""
    return Tally(trace.decoded, len(trace.rounds), trace.decode_s, plain.decode_s)


def forecast(
    trace: Trace, plain: Trace, costs: RowCosts, drafting: Drafting, length: int, *, longest: int = LONGEST
) -> Tally:
    """What a draft length would have given on an answer of one drafter.

    Args:
        trace: the answer, drafted at the length `longest`.
        plain: the same answer by plain decoding.
        costs: T(m).
        drafting: what the drafter takes.
        length: tokens drafted each round; not more than `longest`.
        longest: that were drafted each round.
    """
    if not plain.rounds:
        return Tally()
    pass_s, plain_s = costs.behind(trace.load), plain.pass_s
    level = plain_s / pass_s(1)
    steps = [
        step
        for draft, path in _joined(trace.rounds, longest)
        for step in cut(draft, path, length, cut_off=len(draft.tokens) >= longest)
    ]
    seconds = sum(level * pass_s(1 + step.drafted) + plain_s * drafting.passes(step.drafted) for step in steps)
    seconds += len(steps) * drafting.beside_s + _reading_s(trace, plain_s * drafting.token)
    return Tally(trace.decoded, len(steps), seconds, _plain_s(plain))


def forecast_as_recorded(trace: Trace, plain: Trace, costs: RowCosts) -> Tally:
    """What the rounds of an answer cost by T(m) and by what drafting took, whoever chose their drafts."""
    if not plain.rounds:
        return Tally()
    pass_s = costs.behind(trace.load)
    level = plain.pass_s / pass_s(1)
    seconds = sum(level * pass_s(1 + len(record.draft.tokens)) + record.draft_s for record in trace.rounds)
    seconds += len(trace.rounds) * trace.beside_s
    return Tally(trace.decoded, len(trace.rounds), seconds, _plain_s(plain))


def cut(draft: Draft, path: Sequence[int], length: int, *, cut_off: bool = False) -> Iterator[Step]:
    """The rounds that drafts of at most `length` tokens would have taken over the text that this draft met.

    A drafter that goes by the text alone would have proposed the same tokens again from where a shorter draft ended.

    Args:
        draft: what was proposed.
        path: indices of the tokens that were accepted.
        length: at least 1.
        cut_off: the draft would have gone on, so that shorter ones always have all the tokens they may.
    """
    place, left = -1, list(path)
    while True:
        offered = _below(draft, place)[:length]
        accepted = 0
        while accepted < len(left) and left[accepted] in offered:
            accepted += 1
        yield Step(length if cut_off else len(offered), accepted)
        if accepted == len(left):
            return
        place, left = left[accepted], left[accepted + 1 :]  # the target itself wrote the next one


def acceptance_by_position(traces: Iterable[Trace]) -> tuple[float, ...]:
    """Of the tokens tested at each place of a draft, beginning with the first, the share that was accepted."""
    tested: list[int] = []
    accepted: list[int] = []
    for record in (record for trace in traces for record in trace.rounds):
        depth = len(record.verdict.path)
        reached = depth + (record.verdict.tested > depth)
        tested += [0] * (reached - len(tested))
        accepted += [0] * (reached - len(accepted))
        for place in range(reached):
            tested[place] += 1
            accepted[place] += place < depth
    return tuple(right / count for right, count in zip(accepted, tested, strict=True))


def acceptance(traces: Iterable[Trace]) -> float | None:
    """Accepted / tested; None where nothing was tested."""
    verdicts = [record.verdict for trace in traces for record in trace.rounds]
    tested = sum(verdict.tested for verdict in verdicts)
    return sum(len(verdict.path) for verdict in verdicts) / tested if tested else None


def _below(draft: Draft, place: int) -> list[int]:
    """The tokens below one of a draft, in the order in which they were proposed."""
    inside = {place}
    for index, parent in enumerate(draft.parent_indices):
        if parent in inside:
            inside.add(index)
    return sorted(inside - {place})


def _joined(rounds: Sequence[RoundRecord], longest: int) -> Iterator[tuple[Draft, Sequence[int]]]:
    """Drafts and what of them was accepted; a long chain that was wholly accepted goes on with the round behind it.

    The bonus token between two such drafts is taken for one that the drafter would have proposed: it was right so far.
    """
    tokens: list[int] = []
    for index, record in enumerate(rounds):
        path = record.verdict.path[: len(record.committed)]
        if record.draft.parents is not None:
            yield record.draft, path
            continue
        accepted = len(tokens) + len(path)
        tokens += record.draft.tokens
        following = rounds[index + 1].draft if index + 1 < len(rounds) else Draft()
        goes_on = following.parents is None and following.tokens
        if goes_on and len(path) == longest and len(record.committed) > longest:
            tokens.append(record.verdict.next_token)
        else:
            yield Draft(tokens=tuple(tokens)), range(accepted)
            tokens = []


def _without_reading(trace: Trace) -> list[RoundRecord]:
    first = next((index for index, record in enumerate(trace.rounds) if record.draft.tokens), len(trace.rounds))
    return [*trace.rounds[:first], *trace.rounds[first + 1 :]]


def _reading_s(trace: Trace, token_s: float) -> float:
    """Seconds that reading the prompt took, beyond the tokens that were drafted at once."""
    first = next((record for record in trace.rounds if record.draft.tokens), None)
    return max(first.draft_s - len(first.draft.tokens) * token_s, 0.0) if first is not None else 0.0


def _plain_s(plain: Trace) -> float:
    return plain.decoded * (plain.pass_s + plain.beside_s)


def _median(values: Iterable[float]) -> float:
    known = list(values)
    return statistics.median(known) if known else 0.0
