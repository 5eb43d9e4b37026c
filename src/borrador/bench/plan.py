"""Which drafters and draft length suit a model on this machine: forecast from some prompts, measured on others."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from borrador.bench.findings import DrafterFacts, Line, Measured, Plan, TaskFacts, recommend
from borrador.bench.forecast import LONGEST, Drafting, RowRatios, forecast, forecast_as_recorded
from borrador.bench.lineup import PLAIN, Lineup, Way
from borrador.bench.prompts import BenchPrompt, Halves
from borrador.bench.trace import Tally, Trace, acceptance, acceptance_by_position, tally, total
from borrador.engine.candidates import ALONE
from borrador.types import SamplingParams

LENGTHS = (1, 2, 3, 4, 6, LONGEST)
SHOWN_ROWS = (1, 2, 3, 4, 5, 6, 8, 12, 16)


Announce = Callable[[Measured], None]


@dataclass(slots=True)
class Planning:
    """The steps of a plan: learn from the known prompts, measure them, forecast, measure the unseen ones, conclude.

    Attributes:
        lineup: answers prompts.
        halves: the prompts.
        params: greedy, with the length of the answers.
        announce: told the answers to each prompt.
        known: what was measured so far of the known prompts.
        unseen: and of the others.
        ratios: T(m) / T(1), by the known prompts.
    """

    lineup: Lineup
    halves: Halves
    params: SamplingParams
    announce: Announce = lambda _measured: None
    known: list[Measured] = field(default_factory=list)
    unseen: list[Measured] = field(default_factory=list)
    ratios: RowRatios = field(init=False)

    def __post_init__(self) -> None:
        self.ratios = RowRatios(self.lineup.costs)

    def plan(self) -> Plan:
        """Measure everything; takes minutes."""
        self.lineup.warm_up(self.params)
        self._let_learn()
        alone = [way for way in self.lineup.ways if not way.by_costs]
        self._measure(self.halves.known, dict.fromkeys(alone, LONGEST), self.known)
        lines = self.forecast()
        self._measure(self.halves.unseen, _best_lengths(lines), self.unseen)
        return self.conclude(lines)

    def expected_s(self) -> float:
        """Roughly how long it takes, by what passes cost at load."""
        costs, runs = self.lineup.costs, len(self.lineup.ways) + 1
        prompts = (*self.halves.known, *self.halves.unseen)
        read = sum(map(self.lineup.prompt_tokens, prompts)) * costs(16) / 16
        learning = sum(way.by_costs for way in self.lineup.ways) * len(self.halves.known) / len(prompts)
        return (runs + learning) * (read + len(prompts) * self.params.max_tokens * costs(1))

    def forecast(self) -> list[Line]:
        """Every drafter at every length, and the choices by costs, from the known prompts."""
        pairs = ((answer, each.plain) for each in self.known for answer in each.answers.values())
        self.ratios = RowRatios(self.lineup.costs, pairs)
        lines = []
        for way in self.lineup.ways:
            for length in (None,) if way.by_costs else LENGTHS:
                predicted = [tally for _, tally in self._predict(way, length)]
                lines.append(Line(way, length, total(predicted)))
        return lines

    def conclude(self, lines: Sequence[Line]) -> Plan:
        """The plan, once all is measured."""
        lengths = _best_lengths(lines)
        measured = {way: total(tally(each.answers[way], each.plain) for each in self.unseen) for way in lengths}
        checked = [
            Line(line.way, line.draft_tokens, line.predicted, measured[line.way])
            if line.draft_tokens == lengths[line.way]
            else line
            for line in lines
        ]
        recommended = recommend(checked)
        return Plan(
            row_costs={rows: self.ratios.behind(ALONE)(rows) for rows in SHOWN_ROWS},
            pass_s=statistics.median(each.plain.pass_s for each in self.known),
            drafters={way.drafters[0]: self._facts(way) for way in self.lineup.ways if not way.by_costs},
            lines=checked,
            recommended=recommended,
            tasks={} if recommended is None else self._tasks(recommended),
            answers=(*self.known, *self.unseen),
        )

    def _let_learn(self) -> None:
        """Let choices by costs find out what drafters are worth: who runs a model by its plan begins with that."""
        for prompt in self.halves.known:
            for way in self.lineup.ways:
                if way.by_costs:
                    self.lineup.answer(way, prompt, self.params, 0)

    def _measure(
        self,
        prompts: Sequence[BenchPrompt],
        lengths: Mapping[Way, int | None],
        into: list[Measured],
    ) -> None:
        """Answer each prompt in every way. Their order alternates: a machine that slows down favours none."""
        ways = (PLAIN, *self.lineup.ways)
        for index, prompt in enumerate(prompts):
            answers: dict[Way, Trace] = {}
            for way in ways if index % 2 == 0 else reversed(ways):
                answers[way] = self.lineup.answer(way, prompt, self.params, lengths.get(way) or 0)
            plain = answers.pop(PLAIN)
            into.append(Measured(prompt, plain, {way: answers[way] for way in self.lineup.ways}))
            self.announce(into[-1])

    def _predict(self, way: Way, length: int | None) -> Iterable[tuple[str, Tally]]:
        """For each known prompt its task, and what this way would have given."""
        drafting = Drafting.of([each.answers[way] for each in self.known], [each.plain for each in self.known])
        for each in self.known:
            trace, plain = each.answers[way], each.plain
            if length is None:
                yield each.prompt.task, forecast_as_recorded(trace, plain, self.ratios)
            else:
                yield each.prompt.task, forecast(trace, plain, self.ratios, drafting, length)

    def _facts(self, way: Way) -> DrafterFacts:
        traces, plain = [each.answers[way] for each in self.known], [each.plain for each in self.known]
        return DrafterFacts(acceptance(traces), acceptance_by_position(traces), Drafting.of(traces, plain).token)

    def _tasks(self, line: Line) -> dict[str, TaskFacts]:
        predicted = list(self._predict(line.way, line.draft_tokens))
        tasks = dict.fromkeys(each.prompt.task for each in (*self.known, *self.unseen))
        facts = {}
        for task in tasks:
            unseen = [each for each in self.unseen if each.prompt.task == task]
            facts[task] = TaskFacts(
                acceptance(each.answers[line.way] for each in (*self.known, *self.unseen) if each.prompt.task == task),
                total(tally for name, tally in predicted if name == task),
                total(tally(each.answers[line.way], each.plain) for each in unseen) if unseen else None,
            )
        return facts


def _best_lengths(lines: Sequence[Line]) -> dict[Way, int | None]:
    """Of every way the length with the highest predicted speed-up."""
    best: dict[Way, Line] = {}
    for line in lines:
        if line.way not in best or line.predicted.speedup > best[line.way].predicted.speedup:
            best[line.way] = line
    return {way: line.draft_tokens for way, line in best.items()}
