from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest
from tests.scripted import VOCABULARY
from tests.verify.scripted import make_parts, small_drafter

from borrador.bench.prompts import BenchPrompt, Start
from borrador.bench.start import Contestant
from borrador.draft.history import History
from borrador.draft.protocol import Drafter
from borrador.draft.suffix import SuffixDrafter, SuffixSession
from borrador.engine.llm import LLM
from borrador.errors import UsageError
from borrador.models.scripted import ScriptedModel, ScriptedTarget
from borrador.models.target import Rows
from borrador.sampling.shaping import Shaper
from borrador.types import Float32Array, SamplingParams

PROMPTS = [BenchPrompt(text, "letters", text) for text in ("abcab", "nomno", "gagag", "kkk")]
PARAMS = SamplingParams(max_tokens=24)


class Suffix(SuffixDrafter):
    """Remembers what history it was given, and what was known when an answer was begun."""

    given: History | None = None

    def __init__(self) -> None:
        super().__init__()
        self.known: Callable[[], Mapping[str, Any]] = dict
        self.openings: list[Any] = []

    def open_in(self, namespace: str, shaper: Shaper, /) -> SuffixSession:
        self.openings.append(self.known().get("drafters", {}).get("suffix", {}).get("calibration"))
        return super().open_in(namespace, shaper)

    def use(self, history: History) -> None:
        self.given = history
        super().use(history)


class DearModel(ScriptedModel):
    """Whose passes take so long that a draft always pays, whatever else the machine does."""

    def open(self, context_length: int) -> ScriptedTarget:
        return _DearTarget(self, context_length)


class _DearTarget(ScriptedTarget):
    def forward(self, rows: Rows) -> Float32Array:
        time.sleep(0.002)
        return super().forward(rows)


@pytest.fixture
def suffix() -> Suffix:
    return Suffix()


@pytest.fixture
def llm(suffix: Suffix) -> Iterator[LLM]:
    drafters: Sequence[Drafter] = (suffix, small_drafter())
    model = DearModel(VOCABULARY, seed=17, memory=1, sharpness=3.0)
    with make_parts(model, drafters).assemble() as assembled:
        yield assembled


@pytest.mark.parametrize("start", ["carried", "cold", "warm"])
def test_answers_are_the_same_whatever_drafters_know(llm: LLM, start: Start) -> None:
    contestant = Contestant(llm, start)
    halves = contestant.split(PROMPTS)
    contestant.learn(halves.known, PARAMS)
    pairs = list(contestant.ways.run(halves.unseen, PARAMS, repeats=2))
    assert len(pairs) == (4 if start == "warm" else 8)
    assert all(pair.identical and pair.plain.tokens > 1 for pair in pairs)
    assert {run.prompt_tokens_cached for pair in pairs for run in (pair.plain, pair.speculative)} == {0}
    assert not any(pair.plain.drafters for pair in pairs)
    assert any(pair.speculative.drafters for pair in pairs)


def test_draft_models_are_named_without_their_folders() -> None:
    model = small_drafter()
    model.name = "/home/someone/c++/a+suffix.gguf"
    with make_parts(drafters=(model, SuffixDrafter())).assemble() as llm:
        pairs = list(Contestant(llm).ways.run(PROMPTS, PARAMS))
    names = {figures.drafter for pair in pairs for figures in pair.speculative.drafters}
    assert any("gguf" in name for name in names)
    assert names <= {"a+suffix.gguf", "suffix", "a+suffix.gguf+suffix"}


def test_times_of_a_run_are_those_of_its_rounds(llm: LLM) -> None:
    (pair,) = Contestant(llm).ways.run(PROMPTS[:1], PARAMS)
    run = pair.speculative
    assert run.decode_s == pytest.approx(sum(each.total_s for each in run.rounds))
    assert run.sample_s == pytest.approx(sum(each.sample_s for each in run.rounds))
    assert run.sample_s > 0.0
    assert run.draft_s + run.forward_s + run.sample_s <= run.decode_s
    assert sum(each.tokens for each in run.rounds) == run.tokens_decoded == len(run.token_ids) - 1
    assert len(run.rounds) == run.passes - 1


@pytest.mark.parametrize("start", ["carried", "cold"])
def test_cold_drafters_know_nothing_before_a_prompt(llm: LLM, suffix: Suffix, start: Start) -> None:
    suffix.known = lambda: llm.planner.learnt
    new = llm.planner.learnt["drafters"]["suffix"]["calibration"]
    list(Contestant(llm, start).ways.run(PROMPTS, PARAMS))
    assert suffix.openings[0] == new
    assert (suffix.openings[1:] == [new] * 3) == (start == "cold")


def test_warm_drafters_know_other_prompts_and_nothing_of_those_measured(llm: LLM, suffix: Suffix) -> None:
    contestant = Contestant(llm, "warm")
    halves = contestant.split(PROMPTS)
    told: list[str] = []
    contestant.learn(halves.known, PARAMS, lambda prompt: told.append(prompt.id))
    learnt, history = llm.planner.learnt["drafters"]["suffix"]["calibration"], suffix.given
    assert told == [prompt.id for prompt in halves.known]
    assert set(halves.known).isdisjoint(halves.unseen)
    assert history is not None
    length = history.automaton.length
    assert length > 0
    suffix.known = lambda: llm.planner.learnt
    suffix.openings.clear()
    list(contestant.ways.run(halves.unseen, PARAMS, repeats=2))
    assert suffix.openings == [learnt] * 4
    assert history.automaton.length == length


def test_warm_start_needs_two_prompts(llm: LLM) -> None:
    with pytest.raises(UsageError, match="at least 2 prompts"):
        Contestant(llm, "warm").split(PROMPTS[:1])
