"""Answers without a seed: whoever drafts, they follow the target's own law, through all of the engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import pytest
from scipy import stats
from tests.scripted import END, VOCABULARY, OracleDrafter, ids, scripted_llm

from borrador.draft import model as model_drafting
from borrador.draft.lookup import LookupDrafter
from borrador.draft.model import ModelDrafter, ModelDraftSession
from borrador.draft.protocol import Drafter, GoOn, always
from borrador.draft.recycle import RecycleDrafter
from borrador.draft.shortlist import Shortlist
from borrador.draft.suffix import SuffixDrafter
from borrador.models.scripted import ScriptedModel
from borrador.sampling import acceptance, rules
from borrador.sampling.noise import FreshNoise, Noise
from borrador.sampling.shaping import History, Shaper
from borrador.types import Draft, Float32Array, SamplingParams

PROMPT = "bcd"
TOKENS = 3  # of each answer are looked at
ANSWERS = 1200
# One more than a draft of four, so that the tokens that are looked at are drafted as in longer answers.
PARAMS = SamplingParams(temperature=1.2, top_k=5, max_tokens=5, ignore_eos=True)
TARGET, SMALL = ScriptedModel(VOCABULARY, seed=1, memory=2), ScriptedModel(VOCABULARY, seed=2, memory=2)
Answers = Counter[tuple[int, ...]]


def law_after(model: ScriptedModel, context: Sequence[int]) -> Float32Array:
    law = np.empty(VOCABULARY, np.float32)
    Shaper(PARAMS).law(model.logits_after(context), History(context)).write(law)
    return law


class DrawnTrees(OracleDrafter):
    """Two siblings, drawn without replacement, and two children of the second."""

    def __init__(self) -> None:
        super().__init__(lambda context: ())
        self._generator = np.random.default_rng(77)

    def propose(self, context: Sequence[int], budget: int, go_on: GoOn = always) -> Draft:
        q = np.full((4, VOCABULARY), np.nan, np.float32)
        q[0] = law_after(SMALL, context)
        first, second = self._draw_two(q[0])
        q[2] = law_after(SMALL, (*context, second))
        tokens = (first, second, *self._draw_two(q[2]))
        return Draft(tokens=tokens, parents=(-1, -1, 1, 1), q=q, drafter=self.name)

    def _draw_two(self, q: Float32Array) -> tuple[int, int]:
        law = q.astype(np.float64) / q.sum(dtype=np.float64)
        first, second = self._generator.choice(VOCABULARY, 2, replace=False, p=law)
        return int(first), int(second)


class HintedDrafter(ModelDrafter):
    """A draft model that is told what is often its own likeliest choice."""

    def open(self, shaper: Shaper, /, noise: Noise | None = None) -> ModelDraftSession:
        session = super().open(shaper, noise)
        session.use_hints((lambda context, path, count: tuple(likely_chain(SMALL, [*context, *path], count)),))
        session.use_hints = lambda hints: None  # type: ignore[method-assign]
        return session


def likely_chain(model: ScriptedModel, tokens: list[int], count: int) -> list[int]:
    path = list(tokens)
    for _ in range(count):
        path.append(int(model.logits_after(path).argmax()))
    return path[len(tokens) :]


def likeliest(context: Sequence[int]) -> list[int]:
    return likely_chain(TARGET, list(context), 4)


def unlikely(context: Sequence[int]) -> list[int]:
    return [int(TARGET.logits_after(context).argmin())] * 4


def at_random(context: Sequence[int]) -> list[int]:
    return [int(token) for token in np.random.default_rng(context).integers(0, VOCABULARY, 4)]


DRAFTERS: dict[str, Callable[[], Drafter]] = {
    "right": lambda: OracleDrafter(likeliest),
    "wrong": lambda: OracleDrafter(unlikely),
    "random": lambda: OracleDrafter(at_random),
    "end first": lambda: OracleDrafter(lambda context: [END, *likeliest(context)]),
    "over-long": lambda: OracleDrafter(lambda context: likeliest(context) * 9, obedient=False),
    "lookup": LookupDrafter,
    "recycle": RecycleDrafter,
    "suffix": SuffixDrafter,
    "model": lambda: ModelDrafter("model", SMALL, context_length=64, vocabulary_size=VOCABULARY),
    "shortlist": lambda: ModelDrafter(
        "short", SMALL, context_length=64, vocabulary_size=VOCABULARY, shortlist=Shortlist(SMALL, [0, 1, 4, 7, 9])
    ),
    "hinted": lambda: HintedDrafter("hinted", SMALL, context_length=64, vocabulary_size=VOCABULARY),
    "same model": lambda: ModelDrafter("same", TARGET, context_length=64, vocabulary_size=VOCABULARY),
    "drawn trees": DrawnTrees,
}


@cache
def exact_law() -> dict[tuple[int, ...], float]:
    law: dict[tuple[int, ...], float] = {(): 1.0}
    for _ in range(TOKENS):
        law = {
            (*answer, token): mass * float(probability)
            for answer, mass in law.items()
            for token, probability in enumerate(law_after(TARGET, [*ids(PROMPT), *answer]))
            if probability > 0.0
        }
    return law


def draw_answers(drafter: Drafter, monkeypatch: pytest.MonkeyPatch) -> tuple[Answers, float]:
    """Answers' first tokens, and the acceptance on the way. Every user of chance has a fixed generator of its own."""
    generators = iter(np.random.default_rng(11).spawn(2 * ANSWERS))
    for module in (rules, model_drafting):
        monkeypatch.setattr(module, "FreshNoise", lambda: FreshNoise(next(generators)))
    answers: Answers = Counter()
    tested = accepted = 0
    llm = scripted_llm(TARGET, drafter)
    for _ in range(ANSWERS):
        completion = llm.generate(PROMPT, PARAMS)
        answers[completion.token_ids[:TOKENS]] += 1
        tested += completion.stats.draft_tokens_tested
        accepted += completion.stats.draft_tokens_accepted
    return answers, accepted / max(tested, 1)


def p_value(answers: Answers) -> float:
    """Chi-square of the answers against the target's exact law; 0 where one of them is impossible."""
    law = exact_law()
    if answers.keys() - law.keys():
        return 0.0
    expected = np.array(list(law.values()))
    counts = np.array([answers[answer] for answer in law])
    rare = expected * ANSWERS < 5.0
    if rare.any():  # the approximation needs more of them, so they are counted together
        counts = np.append(counts[~rare], counts[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
    return float(stats.chisquare(counts, expected / expected.sum() * ANSWERS).pvalue)


@pytest.mark.parametrize("drafter", DRAFTERS)
def test_no_drafter_changes_the_law_of_answers(drafter: str, monkeypatch: pytest.MonkeyPatch) -> None:
    answers, acceptance_seen = draw_answers(DRAFTERS[drafter](), monkeypatch)
    assert p_value(answers) > 1e-4
    low, high = {"wrong": (0.0, 0.0), "same model": (0.9999, 1.0)}.get(drafter, (0.0, 1.0))
    assert low <= acceptance_seen <= high


@pytest.mark.parametrize("drafter", ["model", "shortlist", "hinted", "drawn trees"])
def test_a_wrong_residual_is_noticed(drafter: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acceptance, "residual", lambda p, q: p)
    answers, _ = draw_answers(DRAFTERS[drafter](), monkeypatch)
    assert p_value(answers) < 1e-8
