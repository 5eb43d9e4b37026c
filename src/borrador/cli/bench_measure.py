"""`borrador bench` with a model here: measure, print, and keep what was measured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from borrador.bench.environment import describe_machine, describe_model, describe_versions
from borrador.bench.files import as_name, require_writable
from borrador.bench.prompts import BenchPrompt, Halves, Start, load_prompts, require_room
from borrador.bench.record import Record, Settings
from borrador.bench.report import as_json, describe_divergence
from borrador.bench.row_cost import RowCosts, measure_model
from borrador.bench.runs import Pair
from borrador.bench.score.scoring import Score
from borrador.bench.start import Contestant, short_name
from borrador.bench.summary import Summary, summarise
from borrador.cli.bench_report import write_page
from borrador.cli.bench_score import describe_score, require_problems, score_pairs, tabulate_score
from borrador.cli.bench_tables import describe, tabulate
from borrador.cli.models import find_model
from borrador.cli.output import error_console, print_json, print_table, print_wrapped, standard_output
from borrador.cli.progress import StepProgress
from borrador.cli.prompt import as_messages
from borrador.config import EngineConfig
from borrador.draft.plugin import find_plugins
from borrador.draft.registry import BUILT_IN, expand_specs
from borrador.errors import UsageError, VerificationError
from borrador.models.native import NativeModel
from borrador.types import SamplingParams

if TYPE_CHECKING:
    from borrador.engine.llm import LLM

_ROW_REPEATS = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """What was asked for on the command line.

    Attributes:
        model: as the user names it.
        params: of every answer.
        prompts: the file they come from.
        per_task: as for `load_prompts`.
        repeats: how often each is answered in both ways.
        start: what drafters know.
        save: where the record goes; None keeps nothing.
        report: where its page goes; None writes none.
        score: run the prompts' tests on the answers.
        json: print the summary as JSON too.
        quiet: no notices and no bar.
    """

    model: str
    params: SamplingParams
    prompts: Path
    per_task: int | None
    repeats: int
    start: Start
    save: Path | None
    report: Path | None
    score: bool
    json: bool
    quiet: bool

    def load_prompts(self) -> tuple[BenchPrompt, ...]:
        """The prompts, once all is checked that can be checked before a model is loaded.

        Raises:
            UsageError: options break a rule, or the prompts cannot be read.
            BorradorError: the record could not be written.
        """
        params = self.params
        if params.max_tokens < 2:
            raise UsageError(
                f"--max-tokens must be at least 2 to measure decoding, got {params.max_tokens}",
                "An answer's first token comes out of the prompt's own pass.",
            )
        if params.seed is not None and params.greedy:
            raise UsageError(
                f"--seed {params.seed} has no effect at temperature 0, which draws nothing", "Add --temperature 1."
            )
        if self.save is not None:
            require_writable(self.save, "--save", ".json")
        if self.report is not None:
            require_writable(self.report, "--report", ".html")
        chosen = load_prompts(self.prompts, self.per_task)
        if self.score:
            require_problems(chosen, self.prompts)
        if self.start == "warm":
            Halves.of(chosen, "a warm start")
        return chosen

    def run(self, llm: LLM, config: EngineConfig, prompts: Sequence[BenchPrompt]) -> None:
        """Measure everything, print and save what was found.

        Raises:
            ContextLengthError: a prompt is too long.
            VerificationError: speculation changed an answer.
            KeyboardInterrupt: by the user; then what was measured so far is printed, and nothing is saved.
        """
        require_room(prompts, lambda prompt: len(llm.tokenize(as_messages(prompt.text, None))), llm.context_length)
        contestant = Contestant(llm, self.start)
        halves = contestant.split(prompts)
        settings = self._settings(config, llm.context_length, halves)
        pairs: list[Pair] = []
        try:
            row_costs = self._measure(llm, contestant, halves, pairs)
            score = score_pairs(pairs, prompts, quiet=self.quiet) if self.score else None
        except KeyboardInterrupt:
            self._print_unfinished(pairs, len(halves.unseen), settings)
            raise
        summary = summarise(pairs, compared=settings.compares_answers)
        self._print(summary, settings, score)
        if self.keeps:
            self._keep(replace(self._make_record(llm, config, settings, row_costs, pairs, summary), score=score))
        if (found := summary.first_divergence) is not None:
            raise VerificationError(
                describe_divergence(found), "This is a bug in borrador; please report it with the prompt."
            )

    def _measure(self, llm: LLM, contestant: Contestant, halves: Halves, pairs: list[Pair]) -> RowCosts | None:
        """Measure into `pairs`, so that what there is survives an interruption; T(m), where it is to be kept."""
        total, row_costs = len(halves.unseen) * self.repeats, None
        with StepProgress(error_console(), len(halves.known) + total, quiet=self.quiet) as progress:
            if self.keeps and isinstance(llm.model, NativeModel):
                progress.say("T(m)")
                row_costs = measure_model(llm.model, _ROW_REPEATS)
            progress.say("warm-up")
            contestant.ways.warm_up(self.params)
            contestant.learn(halves.known, self.params, lambda prompt: progress.step(f"learning from {prompt.id}"))
            for pair in contestant.ways.run(halves.unseen, self.params, self.repeats):
                pairs.append(pair)
                progress.step(_describe_pair(pair))
        return row_costs

    @property
    def keeps(self) -> bool:
        """There will be a record, if only to draw it."""
        return self.save is not None or self.report is not None

    def _keep(self, record: Record) -> None:
        if self.save is not None:
            record.save(self.save)
            if not self.quiet:
                print_wrapped(error_console(), f"saved in {self.save}", style="dim")
        if self.report is not None:
            write_page(record, self.report, quiet=self.quiet)

    def _print(self, summary: Summary, settings: Settings, score: Score | None) -> None:
        print_table(tabulate(summary), *describe(summary, settings))
        scored = {}
        if score is not None:
            standard_output().write("\n")
            print_table(tabulate_score(score), *describe_score(score))
            scored = {"score": score.as_json()}
        if self.json:
            print_json(as_json(summary) | scored)
        standard_output().flush()

    def _print_unfinished(self, pairs: Sequence[Pair], prompts: int, settings: Settings) -> None:
        """The table alone: whoever reads JSON must not take a part for the whole."""
        if not pairs:
            return
        summary = summarise(pairs, compared=settings.compares_answers)
        note = f"interrupted after {len(pairs)} of {prompts * self.repeats} pairs"
        print_table(tabulate(summary), *describe(summary, settings), f"{note}; nothing is saved")
        standard_output().flush()

    def _settings(self, config: EngineConfig, context_length: int, halves: Halves) -> Settings:
        return Settings(
            draft=tuple(short_name(name) for name in expand_specs(config.draft)),
            draft_tokens=config.draft_tokens,
            draft_shortlist=config.draft_shortlist,
            draft_weights=config.draft_weights,
            history=config.history is not None,
            profile=config.profile,
            context=context_length,
            max_tokens=self.params.max_tokens,
            temperature=self.params.temperature,
            seed=self.params.seed,
            repeats=self.repeats,
            start=self.start,
            prompts=as_name(self.prompts.name),
            per_task=self.per_task,
            warm_up_prompts=tuple(prompt.id for prompt in halves.known),
        )

    def _make_record(
        self,
        llm: LLM,
        config: EngineConfig,
        settings: Settings,
        row_costs: RowCosts | None,
        pairs: Iterable[Pair],
        summary: Summary,
    ) -> Record:
        plugins = find_plugins()
        names = [self.model]
        names += [name for name in expand_specs(config.draft) if name not in BUILT_IN and name not in plugins]
        model, *draft_models = (describe_model(name, find_model(name, quiet=True)) for name in names)
        return Record(
            date=datetime.now(timezone.utc).isoformat(timespec="seconds"),
            versions=describe_versions(),
            machine=describe_machine(llm.model),
            model=model,
            draft_models=tuple(draft_models),
            settings=settings,
            row_costs=row_costs,
            pairs=tuple(pairs),
            summary=summary,
        )


def _describe_pair(pair: Pair) -> str:
    speeds = (pair.plain.decode_tok_s, pair.speculative.decode_tok_s)
    shown = " and ".join("-" if speed is None else f"{speed:.1f}" for speed in speeds)
    return f"{pair.prompt}: {shown} tok/s"
