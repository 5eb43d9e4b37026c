"""Drafters that learn from passes see what the target held likely behind every row, and nothing else changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from tests.scripted import END, VOCABULARY, OracleDrafter, ids, scripted_answer, scripted_llm

from borrador.draft.lookup import LookupDrafter
from borrador.draft.protocol import GoOn, SuccessorLearner, always
from borrador.engine.fixed_length import FixedLength
from borrador.models.scripted import ScriptedModel, ScriptedTarget
from borrador.models.target import BestTokens, Rows
from borrador.types import Draft, Float32Array, SamplingParams

WANTED = 3
Pass = tuple[list[int], Draft, BestTokens]

PARAMS: dict[str, dict[str, Any]] = {
    "greedy": {},
    "log probabilities": {"logprobs": 5},
    "penalties": {"repetition_penalty": 1.4, "logit_bias": {2: 3.0}},
    "seeded": {"temperature": 0.9, "seed": 5},
    "block": {"temperature": 0.9},
    "rejection": {"temperature": 0.9, "acceptance": "rejection", "top_k": 4},
    "grammar": {"regex": "[a-d]{3}(fghij|klmno)[a-c]{20}"},
}


class LearningDrafter(OracleDrafter):
    """Proposes a tree of every kind of token, and notes what it is taught."""

    def __init__(self, successors: int = WANTED) -> None:
        super().__init__(lambda context: [len(context) % 5, 3, (len(context) + 1) % 5, 9])
        self.successors = successors
        self.passes: list[Pass] = []

    def propose(self, context: Sequence[int], budget: int, go_on: GoOn = always) -> Draft:
        tokens = tuple(self.continuation(context))
        return Draft(tokens=tokens, parents=(-1, -1, 0, 2), drafter=self.name).first(budget)

    def learn_successors(self, context: Sequence[int], draft: Draft, best: BestTokens) -> None:
        self.passes.append((list(context), draft, best))


def require_right(model: ScriptedModel, passes: Sequence[Pass], count: int = WANTED) -> None:
    """Each row's best tokens are those of the model behind the context and the row's own path, at its own logits."""
    for context, draft, best in passes:
        assert best.ids.shape == (1 + len(draft.tokens), count)
        for row in range(1 + len(draft.tokens)):
            logits = model.logits_after([*context, *draft.path_to(row)])
            expected = np.argsort(-logits, kind="stable")[:count]
            assert best.ids[row].tolist() == expected.tolist()
            assert best.logits[row].tolist() == logits[expected].tolist()


@pytest.mark.parametrize("kind", PARAMS)
def test_every_row_comes_with_its_own_successors(kind: str) -> None:
    model, drafter = ScriptedModel(VOCABULARY, seed=3), LearningDrafter()
    params = SamplingParams(max_tokens=20, ignore_eos="regex" not in PARAMS[kind], **PARAMS[kind])
    llm = scripted_llm(model, drafter)
    answer = llm.generate("abc", params)
    require_right(model, drafter.passes)
    assert len(drafter.passes) == answer.stats.target_passes == len(drafter.observed)
    context, draft, _ = drafter.passes[0]
    assert (context, draft.tokens) == (ids("abc"), ())  # the prompt's last token is a row too
    contexts = [context for context, _, _ in drafter.passes]
    written = [*ids("abc"), *answer.token_ids]
    assert all(context == written[: len(context)] for context in contexts)
    assert sum(len(draft.tokens) for _, draft, _ in drafter.passes) >= 8


def test_rows_of_other_drafters_teach_as_well() -> None:
    model, drafter = ScriptedModel(VOCABULARY, seed=3), LearningDrafter()
    sure = OracleDrafter(lambda context: [4], name="first heard")
    scripted_llm(model, sure, drafter).generate("abc", SamplingParams(max_tokens=9, ignore_eos=True))
    require_right(model, drafter.passes)
    assert {draft.drafter for _, draft, _ in drafter.passes} == {"none", "first heard"}


def test_several_answers_teach_beside_one_another() -> None:
    model, drafter = ScriptedModel(VOCABULARY, seed=3), LearningDrafter()
    params = SamplingParams(temperature=0.9, seed=1, max_tokens=6, ignore_eos=True)
    answers = scripted_llm(model, drafter).generate("abc", params, n=3)
    require_right(model, drafter.passes)
    starts = [index for index, (context, _, _) in enumerate(drafter.passes) if context == ids("abc")]
    assert len(starts) == 3
    assert sum(answer.stats.target_passes for answer in answers) == len(drafter.passes)


@pytest.mark.parametrize("end", [2, 3, 4])
def test_a_round_that_ends_the_answer_teaches_all_of_its_rows(end: int) -> None:
    letters = "defgh"[:end] + "!kkkk"
    model, drafter = scripted_answer("abc", letters), LearningDrafter()
    drafter.continuation = lambda context: [*ids(letters)[len(context) - 3 :], 0, 0, 0, 0][:4]
    answer = scripted_llm(model, drafter).generate("abc", SamplingParams(max_tokens=30))
    assert answer.finish_reason == "stop"
    assert answer.token_ids == tuple(ids(letters)[:end])
    require_right(model, drafter.passes)
    assert any(END in draft.tokens for _, draft, _ in drafter.passes)


def test_a_round_in_which_all_drafters_rest_teaches_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FixedLength, "rests", lambda self, load: load.context % 2 == 0)
    model, drafter = ScriptedModel(VOCABULARY, seed=3), LearningDrafter()
    answer = scripted_llm(model, drafter).generate("abc", SamplingParams(max_tokens=12, ignore_eos=True))
    require_right(model, drafter.passes)
    taught = [len(context) for context, _, _ in drafter.passes]
    assert 1 < len(taught) < answer.stats.target_passes
    assert all((length - 1) % 2 for length in taught[1:])  # the first pass is the prompt's


def test_the_most_that_any_drafter_wants_is_asked_for() -> None:
    model, modest, curious = ScriptedModel(VOCABULARY, seed=3), LearningDrafter(2), LearningDrafter(6)
    curious.name = "curious"
    scripted_llm(model, modest, curious).generate("abc", SamplingParams(max_tokens=6, ignore_eos=True))
    require_right(model, modest.passes, 6)
    require_right(model, curious.passes, 6)


class NotingTarget(ScriptedTarget):
    """Notes how many of the best tokens are asked for."""

    def __init__(self, model: ScriptedModel, context_length: int) -> None:
        super().__init__(model, context_length)
        self.asked: list[int] = []

    def best(self, rows: Rows, count: int, *, within: int | None = None, normalised: bool = False) -> BestTokens:
        self.asked.append(count)
        return super().best(rows, count, within=within, normalised=normalised)


class NotingModel(ScriptedModel):
    def open(self, context_length: int) -> NotingTarget:
        return NotingTarget(self, context_length)


@pytest.mark.parametrize(("learners", "count"), [(0, 1), (1, WANTED)])
def test_nothing_is_computed_where_nobody_asks(learners: int, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    llm = scripted_llm(NotingModel(VOCABULARY, seed=3), LookupDrafter(), *[LearningDrafter()] * learners)
    target = llm._sequence.target
    assert isinstance(target, NotingTarget)
    llm.generate("abab", SamplingParams(max_tokens=9))
    assert set(target.asked) == {count}
    target.asked.clear()
    llm.generate("abab", SamplingParams(max_tokens=9), speculate=False)
    assert set(target.asked) == {1}


def test_only_sessions_that_learn_from_passes_count_as_such() -> None:
    assert isinstance(LearningDrafter(), SuccessorLearner)
    assert not isinstance(OracleDrafter(lambda context: []), SuccessorLearner)


class Damaged(ScriptedModel):
    """Has no finite logits behind token 3, which it never writes."""

    def logits_after(self, prefix: Sequence[int]) -> Float32Array:
        logits = super().logits_after(prefix).copy()
        logits[3] = -50.0
        return np.full_like(logits, np.nan) if prefix[-1] == 3 else logits


@pytest.mark.parametrize("kind", ["greedy", "seeded"])
def test_refused_rows_that_are_not_finite_have_no_successors(kind: str) -> None:
    model, drafter = Damaged(VOCABULARY, seed=3), LearningDrafter()
    params = SamplingParams(max_tokens=12, ignore_eos=True, **PARAMS[kind])
    answer = scripted_llm(model, drafter).generate("abc", params)
    assert 3 not in answer.token_ids
    rows = [
        (draft.path_to(row)[-1:] == (3,), best.ids[row].tolist())
        for _, draft, best in drafter.passes
        for row in range(1 + len(draft.tokens))
    ]
    assert any(damaged for damaged, _ in rows)
    assert all((found == [-1] * WANTED) == damaged for damaged, found in rows)
