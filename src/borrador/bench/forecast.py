"""From answers that were drafted at one length to the speed-up at every length.

The time of an answer by plain decoding is its tokens times T(1). With drafts it is, over its rounds, T(1 + rows) and
what drafting takes; so with γ tokens drafted each round the speed-up is

    (1 + accepted(γ)) / ((T(1 + γ) + γ t) / T(1)),

accepted(γ) being the mean number of tokens accepted in a round and t the seconds of a drafted token. Where T does not
depend on the rows, and every token is accepted with probability α whatever happened before, this is theorem 3.8 of
arXiv 2211.17192, `borrador.bench.theory.walltime_factor` with c = t / T(1). Here nothing of that is assumed: what
shorter drafts would have met is read off the longer ones, drafters may have none, and trees count with all their rows.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from borrador.bench.trace import Tally, Trace, median
from borrador.engine.candidates import Load, PassCost
from borrador.engine.costs import RowCosts
from borrador.types import Draft, RoundRecord

_MANY = 16  # passes that are enough to correct a size by
LONGEST = 8  # tokens that drafters draft each round while they are looked at


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
            token=median(passes / drafted for drafted, passes in later if drafted),
            nothing=median(passes for drafted, passes in later if not drafted),
            beside_s=median(trace.beside_s for trace in traces),
        )

    def passes(self, drafted: int) -> float:
        return drafted * self.token if drafted else self.nothing


class RowRatios:
    """T(m) / T(1) as measured on its own, corrected by what passes of answers really took.

    A size that many of these passes had is corrected by their median, which is against plain passes of the same answer;
    a size between two such ones by what lies between.

    Args:
        costs: as measured on its own.
        pairs: answers, each with the same answer by plain decoding.
    """

    def __init__(self, costs: RowCosts, pairs: Iterable[tuple[Trace, Trace]] = ()) -> None:
        self._costs = costs
        surprises: dict[int, list[float]] = {}
        for trace, plain in pairs:
            ratio = _ratio(costs, trace.load)
            for record in trace.rounds if plain.pass_s else ():
                rows = record.pending + len(record.draft.tokens)
                surprises.setdefault(rows, []).append(record.forward_s / plain.pass_s / ratio(rows))
        known = {rows: statistics.median(each) for rows, each in surprises.items() if len(each) >= _MANY}
        self._rows, self._corrections = zip(*sorted({**known, 1: 1.0}.items()), strict=True)

    def behind(self, load: Load) -> PassCost:
        """The ratio for passes with this load."""
        ratio = _ratio(self._costs, load)
        return lambda rows: ratio(rows) * float(np.interp(rows, self._rows, self._corrections))


def forecast(
    trace: Trace, plain: Trace, ratios: RowRatios, drafting: Drafting, length: int, *, longest: int = LONGEST
) -> Tally:
    """What a draft length would have given on an answer of one drafter.

    Args:
        trace: the answer, drafted at the length `longest`.
        plain: the same answer by plain decoding.
        ratios: T(m) / T(1).
        drafting: what the drafter takes.
        length: tokens drafted each round; not more than `longest`.
        longest: that were drafted each round.
    """
    if not plain.rounds:
        return Tally()
    ratio = ratios.behind(trace.load)
    steps = [
        step
        for draft, path in _joined(trace.rounds, longest)
        for step in cut(draft, path, length, cut_off=len(draft.tokens) >= longest)
    ]
    passes = sum(ratio(1 + step.drafted) + drafting.passes(step.drafted) for step in steps)
    seconds = plain.pass_s * passes + len(steps) * drafting.beside_s
    seconds += _reading_s(trace, plain.pass_s * drafting.token)
    return Tally(trace.decoded, len(steps), seconds, _plain_s(plain))


def forecast_as_recorded(trace: Trace, plain: Trace, ratios: RowRatios) -> Tally:
    """What the rounds of an answer cost by T(m) and by what drafting took, whoever chose their drafts."""
    if not plain.rounds:
        return Tally()
    ratio = ratios.behind(trace.load)
    seconds = sum(plain.pass_s * ratio(1 + len(record.draft.tokens)) + record.draft_s for record in trace.rounds)
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


def _ratio(costs: RowCosts, load: Load) -> PassCost:
    pass_s = costs.behind(load)
    plain_s = pass_s(1)
    return lambda rows: pass_s(rows) / plain_s


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
