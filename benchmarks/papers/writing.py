"""Answers written in several ways at a time, and what passes and draft steps cost meanwhile.

All ways use the same weights, and always that one writes on which has the fewest tokens: so each meets the same
machine, whose speed changes within seconds. In turn with them, passes over 1, 2, ... rows and draft steps are timed by
themselves.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
from benchmarks.papers.results import PLAIN, Answer, Probe

from borrador.bench.prompts import BenchPrompt
from borrador.bench.runs import count_by_position
from borrador.draft.cross import CrossDrafter
from borrador.draft.model import ModelDrafter
from borrador.draft.protocol import DraftSession
from borrador.engine.answer import Answer as Ending
from borrador.engine.fixed_length import FixedLength
from borrador.engine.loading import Parts
from borrador.engine.proposer import Proposer
from borrador.engine.round import RoundState, play_round
from borrador.models.passes import evaluate
from borrador.models.target import Rows, Target
from borrador.sampling.noise import FreshNoise
from borrador.sampling.rules import AcceptanceRule, GreedyRule, RejectionRule
from borrador.sampling.shaping import Shaper
from borrador.text.detokenizer import Detokenizer
from borrador.types import Float32Array, RoundRecord, SamplingParams

CONTEXT = 1024
MOST_ROWS = 9
_PROBE_EVERY = 8  # tokens
_PROBE_STEPS = 4
_SPARE = 64  # tokens that an answer may have beyond those measured, so that no draft is cut


class Way(NamedTuple):
    """How to write: with drafts of γ tokens by a drafter, or plainly."""

    draft: str = PLAIN
    gamma: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """What all ways of writing share.

    Attributes:
        part: of the measurement.
        drafters: by the names that results give them.
        temperature: 0 is greedy; above it tokens are drawn, and judged by rejection.
        tokens: that are measured of each answer.
    """

    part: str
    parts: Parts
    drafters: Mapping[str, ModelDrafter | CrossDrafter]
    temperature: float
    tokens: int

    def encode(self, prompt: BenchPrompt) -> list[int]:
        text = self.parts.template.render([{"role": "user", "content": prompt.text}])
        return self.parts.tokenizer.encode_prompt(text, specials=True)

    def shaper(self) -> Shaper:
        return Shaper(SamplingParams(temperature=self.temperature, max_tokens=self.tokens + _SPARE))

    def session(self, draft: str, chance: np.random.Generator) -> DraftSession:
        drafter = self.drafters[draft]
        if isinstance(drafter, CrossDrafter):
            return drafter.open(self.shaper())
        return drafter.open(self.shaper(), FreshNoise(chance))

    def rule(self, chance: np.random.Generator) -> AcceptanceRule[Float32Array] | GreedyRule:
        return RejectionRule(self.shaper(), FreshNoise(chance)) if self.temperature else GreedyRule()

    def copy(self, source: Target) -> Target:
        """A sequence that holds what another one does."""
        target = self.parts.model.open(CONTEXT)
        target.copy_from(source, source.length)
        return target


class Writer:
    """Writes one answer in one way.

    Attributes:
        rounds: without the first, which belongs to the prompt.
        state: of the request.
    """

    def __init__(self, desk: Desk, way: Way, prompt: Sequence[int], start: Target, seed: Sequence[int]) -> None:
        rule_chance, draft_chance = np.random.default_rng(seed).spawn(2)
        sessions = {way.draft: desk.session(way.draft, draft_chance)} if way.gamma else {}
        tokenizer = desk.parts.tokenizer
        ending = Ending(
            Detokenizer(tokenizer), stop=(), end_ids=tokenizer.eog_ids, capacity=desk.shaper().params.max_tokens
        )
        self.rounds: list[RoundRecord] = []
        self.state = RoundState(
            target=desk.copy(start),
            context=list(prompt),
            proposer=Proposer(sessions, FixedLength(tuple(sessions), way.gamma), start.vocabulary_size),
            rule=desk.rule(rule_chance),
            ending=ending,
        )
        self._way, self._desk, self._ending = way, desk, ending
        play_round(self.state)
        for session in sessions.values():
            session.propose(self.state.context, 1)  # reads the prompt

    @property
    def written(self) -> int:
        return sum(len(record.committed) for record in self.rounds)

    @property
    def goes_on(self) -> bool:
        return self._ending.finish_reason is None and self.written < self._desk.tokens

    def play(self) -> None:
        record = play_round(self.state)
        if self._ending.finish_reason is None:  # a round in which the answer ends is cut
            self.rounds.append(record)

    def finish(self, prompt: BenchPrompt) -> Answer:
        self.state.proposer.close()
        tested, accepted = count_by_position(self.rounds)
        draft_s, pass_s = (sum(getattr(each, name) for each in self.rounds) for name in ("draft_s", "forward_s"))
        return Answer(
            part=self._desk.part,
            draft=self._way.draft,
            gamma=self._way.gamma,
            temperature=self._desk.temperature,
            prompt=prompt.id,
            rounds=len(self.rounds),
            tokens=self.written,
            tested=tested,
            accepted=accepted,
            draft_s=draft_s,
            pass_s=pass_s,
            beside_s=sum(each.total_s for each in self.rounds) - draft_s - pass_s,
        )


class Prober:
    """Times passes and draft steps behind the text that is being written."""

    def __init__(self, desk: Desk, start: Target) -> None:
        chance = np.random.default_rng(0)
        self._desk, self._target, self._wanted = desk, desk.copy(start), desk.rule(chance).wanted
        self._sessions = {name: desk.session(name, chance) for name in desk.drafters}
        self._pass_s: list[list[float]] = []
        self._step_s: dict[str, list[float]] = {name: [] for name in desk.drafters}

    def measure(self, state: RoundState) -> None:
        self._target.copy_from(state.target, state.target.length)
        self._pass(state, 1)  # the first row behind a copy moves memory
        self._pass_s.append([self._pass(state, rows) for rows in range(1, MOST_ROWS + 1)])
        for name, session in self._sessions.items():
            session.propose(state.context, 1)  # reads what was written since
            start = time.perf_counter()
            draft = session.propose(state.context, _PROBE_STEPS)
            seconds = time.perf_counter() - start
            if draft.tokens:
                self._step_s[name].append(seconds / len(draft.tokens))

    def finish(self, prompt: BenchPrompt) -> Probe:
        for session in self._sessions.values():
            session.close()
        return Probe(
            part=self._desk.part,
            temperature=self._desk.temperature,
            prompt=prompt.id,
            pass_s=tuple(statistics.median(column) for column in zip(*self._pass_s, strict=True)),
            step_s={name: statistics.median(seconds) for name, seconds in self._step_s.items() if seconds},
        )

    def _pass(self, state: RoundState, rows: int) -> float:
        length = self._target.length
        batch = Rows.chain(state.context[-1:] * rows)
        start = time.perf_counter()
        evaluate(self._target, batch, self._wanted)
        seconds = time.perf_counter() - start
        self._target.rewind(length)
        return seconds


def read_prompt(desk: Desk, tokens: Sequence[int]) -> Target:
    """A sequence that holds a prompt without its last token."""
    target = desk.parts.model.open(CONTEXT)
    target.forward(Rows.chain(tokens[:-1], logits_from=len(tokens) - 1))
    target.commit(range(len(tokens) - 1))
    return target


class TurnTaker(Protocol):
    """Who writes on when it is its turn."""

    @property
    def written(self) -> int: ...

    @property
    def goes_on(self) -> bool: ...


Turn = TypeVar("Turn", bound=TurnTaker)


def in_turn(writers: Sequence[Turn]) -> Iterator[Turn]:
    """Always the one with the fewest tokens, until all have finished; it must write before the next is asked for."""
    while going := [writer for writer in writers if writer.goes_on]:
        yield min(going, key=lambda writer: writer.written)


def write_answers(desk: Desk, prompt: BenchPrompt, ways: Sequence[Way], seed: int) -> tuple[list[Answer], Probe]:
    """Answer a prompt in all ways, in turn."""
    tokens = desk.encode(prompt)
    start = read_prompt(desk, tokens)
    writers = [Writer(desk, way, tokens, start, (seed, index)) for index, way in enumerate(ways)]
    prober = Prober(desk, start)
    probe_at = 0
    for last in in_turn(writers):
        if last.written >= probe_at:
            prober.measure(last.state)
            probe_at += _PROBE_EVERY
        last.play()
    return [writer.finish(prompt) for writer in writers], prober.finish(prompt)
