"""Answers written in several ways, with tiny models: one that drafts for itself is always right."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from benchmarks.papers.__main__ import plain_chain
from benchmarks.papers.alpha import measure_alpha
from benchmarks.papers.writing import MOST_ROWS, Desk, Way, in_turn, write_answers
from tests.tiny_gguf import write_tiny_model

from borrador.bench.prompts import BenchPrompt
from borrador.config import EngineConfig
from borrador.engine.loading import open_parts

PROMPTS = (BenchPrompt("qa-1", "qa", "the thing"), BenchPrompt("qa-2", "qa", "hello and the others"))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("models")
    return {name: write_tiny_model(folder / name, seed=seed) for name, seed in (("itself", 1), ("other", 2))}


@contextmanager
def open_desk(files: dict[str, Path], temperature: float) -> Iterator[Desk]:
    specs = tuple(str(path) for path in files.values())
    config = EngineConfig(draft=specs, threads=1, draft_shortlist=0, draft_weights="file", profile=False)
    parts = open_parts(files["itself"], config)
    drafters = {name: plain_chain(drafter) for name, drafter in zip(files, parts.drafters, strict=True)}
    yield Desk(part="chain", parts=parts, drafters=drafters, temperature=temperature, tokens=24)
    parts.close()


@dataclass
class Steady:
    """Writes so many tokens a turn, up to 12."""

    tokens: int
    written: int = 0

    @property
    def goes_on(self) -> bool:
        return self.written < 12


def test_the_one_with_the_fewest_tokens_writes_on() -> None:
    slow, fast = Steady(1), Steady(3)
    order = []
    for writer in in_turn([slow, fast]):
        order.append(writer.tokens)
        writer.written += writer.tokens
        if writer is slow:
            assert slow.written <= fast.written + 1
    assert order == [1, 3, *([1, 1, 1, 3] * 3), 1, 1]
    assert slow.written == fast.written == 12


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_every_way_writes_its_answer_with_drafts_of_its_length(files: dict[str, Path], temperature: float) -> None:
    ways = (Way(), Way("itself", 1), Way("itself", 3), Way("other", 2))
    with open_desk(files, temperature) as desk:
        answers, probe = write_answers(desk, PROMPTS[0], ways, seed=1)
    assert [(answer.draft, answer.gamma) for answer in answers] == list(ways)
    plain, one, three, other = answers
    assert plain.rounds == plain.tokens == 24
    for answer in answers:
        assert answer.tokens == answer.rounds + sum(answer.accepted) >= 24
        assert len(answer.tested) <= answer.gamma
        assert min(answer.pass_s, answer.seconds - answer.pass_s) > 0.0
    assert one.tested == one.accepted == (one.rounds,) == (12,)
    assert three.accepted == (6, 6, 6)
    assert sum(other.accepted) < sum(other.tested)
    assert len(probe.pass_s) == MOST_ROWS
    assert set(probe.step_s) == set(files)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_alpha_is_one_for_the_target_itself_and_less_for_others(files: dict[str, Path], temperature: float) -> None:
    with open_desk(files, temperature) as desk:
        found = list(measure_alpha(desk, PROMPTS, seed=1))
    alphas = {(each.draft, each.prompt): each.alpha for each in found}
    assert len(alphas) == 2 * 4
    for prompt in PROMPTS:
        assert alphas["itself", prompt.id] == pytest.approx(1.0, abs=1e-5)
        for draft in ("other", "unigram", "bigram"):
            assert 0.0 <= alphas[draft, prompt.id] < 0.9
