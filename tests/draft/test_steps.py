"""Several requests draft together: what each proposes is what it proposes alone, in fewer passes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from borrador.draft.model import ModelDrafter, ModelDraftSession
from borrador.draft.steps import DraftPass, Passed, Steps, WorkClock, together
from borrador.errors import ModelError
from borrador.models.scripted import ScriptedModel
from borrador.models.target import Batch, BestTokens, Rows, Wanted
from borrador.sampling.noise import FreshNoise
from borrador.sampling.shaping import Shaper
from borrador.types import Draft, Float32Array, SamplingParams

VOCABULARY = 50
CONTEXTS = [[3, 1, 4], [1, 5, 9, 2, 6], [5], [3, 5, 8, 9, 7, 9]]


class CountingModel(ScriptedModel):
    """A model that notes how many sequences each of its passes serves."""

    def __init__(self) -> None:
        super().__init__(VOCABULARY, seed=4)
        self.passes: list[int] = []
        self.fails = False

    def forward(self, batch: Batch) -> list[Float32Array]:
        self._note(batch)
        return super().forward(batch)

    def best(
        self, batch: Batch, count: int, *, within: int | None = None, normalised: bool = False
    ) -> list[BestTokens]:
        self._note(batch)
        return super().best(batch, count, within=within, normalised=normalised)

    def _note(self, batch: Batch) -> None:
        if self.fails:
            raise ModelError("no pass can be made")
        self.passes.append(len(batch))


def drafter(model: ScriptedModel) -> ModelDrafter:
    return ModelDrafter("model", model, context_length=64, vocabulary_size=VOCABULARY)


def sessions(model: ScriptedModel, params: SamplingParams) -> list[ModelDraftSession]:
    one = drafter(model)
    return [one.open(Shaper(params), FreshNoise(np.random.default_rng(index))) for index, _ in enumerate(CONTEXTS)]


def draft_together(opened: Sequence[ModelDraftSession], budgets: Sequence[int]) -> list[Draft]:
    works = [each.steps(context, budget) for each, context, budget in zip(opened, CONTEXTS, budgets, strict=True)]
    return together(works, [WorkClock() for _ in works])


@pytest.mark.parametrize(
    "params", [SamplingParams(), SamplingParams(temperature=0.8, seed=7), SamplingParams(temperature=1.2)]
)
def test_each_proposes_what_it_proposes_alone(params: SamplingParams) -> None:
    budgets = [4, 1, 6, 3]
    expected = [
        each.propose(context, budget)
        for each, context, budget in zip(
            sessions(ScriptedModel(VOCABULARY, seed=4), params), CONTEXTS, budgets, strict=True
        )
    ]
    expected = [Draft(tokens=draft.tokens, q=None if draft.q is None else draft.q.copy()) for draft in expected]
    found = draft_together(sessions(ScriptedModel(VOCABULARY, seed=4), params), budgets)
    for draft, right in zip(found, expected, strict=True):
        assert draft.tokens == right.tokens
        if right.q is not None:
            np.testing.assert_array_equal(draft.q, right.q)
    assert [len(draft.tokens) for draft in found] == budgets


def test_a_pass_serves_all_that_go_on() -> None:
    model = CountingModel()
    draft_together(sessions(model, SamplingParams()), [4, 1, 6, 3])
    assert model.passes == [4, 3, 3, 2], "and those of one alone are its sequence's own"


def test_requests_of_different_wishes_share_a_pass() -> None:
    """One draws its tokens from logits, the other takes the likeliest."""
    model = CountingModel()
    one = drafter(model)
    drawing, greedy = one.open(Shaper(SamplingParams(temperature=1.0))), one.open(Shaper(SamplingParams()))
    works = [drawing.steps([3, 1], 2), greedy.steps([4, 1], 2)]
    drawn, likeliest = together(works, [WorkClock(), WorkClock()])
    assert (len(drawn.tokens), drawn.q is None, likeliest.q is None) == (2, False, True)
    assert model.passes == [2, 2]
    assert (
        likeliest.tokens
        == drafter(ScriptedModel(VOCABULARY, seed=4)).open(Shaper(SamplingParams())).propose([4, 1], 2).tokens
    )


def test_a_pass_that_fails_fails_for_those_that_share_it_and_for_no_other() -> None:
    model, whole = CountingModel(), CountingModel()
    model.fails, failing = True, drafter(model)
    opened = [each.open(Shaper(SamplingParams())) for each in (failing, failing, drafter(whole))]

    def guarded(session: ModelDraftSession) -> Steps[str]:
        try:
            draft = yield from session.steps([3, 1], 2)
        except ModelError as error:
            return str(error)
        return f"{len(draft.tokens)} tokens"

    found = together([guarded(session) for session in opened], [WorkClock() for _ in opened])
    assert found == ["no pass can be made", "no pass can be made", "2 tokens"]


def test_what_a_request_does_not_handle_is_raised() -> None:
    model = CountingModel()
    model.fails = True
    one = drafter(model)
    works = [one.open(Shaper(SamplingParams())).steps([3, 1], 2) for _ in range(2)]
    with pytest.raises(ModelError, match="no pass"):
        together(works, [WorkClock(), WorkClock()])


def test_a_clock_stands_still_while_others_are_served_and_is_charged_its_part() -> None:
    now = [10.0]
    clock = WorkClock(lambda: now[0])
    now[0] = 11.0
    clock.stop()
    now[0] = 15.0
    assert (clock(), clock.unshared()) == (11.0, 11.0)
    clock.go_on(2.0, company=4)
    assert (clock(), clock.unshared()) == (11.5, 13.0)
    now[0] = 16.0
    assert (clock(), clock.unshared()) == (12.5, 14.0)
    clock.go_on(5.0)
    assert clock() == 12.5, "it was not stopped"


def test_steps_are_sent_what_their_pass_gave() -> None:
    model = CountingModel()
    seen: list[Passed] = []

    def work() -> Steps[int]:
        target = model.open(8)
        seen.append((yield DraftPass(model, target, Rows.chain([1, 2], logits_from=1), Wanted(2), 40)))
        return len(seen)

    assert together([work(), work()], [WorkClock(), WorkClock()]) == [1, 2]
    assert [each.company for each in seen] == [2, 2]
    assert all(isinstance(each.evidence, BestTokens) and each.evidence.ids.shape == (1, 2) for each in seen)
    assert all(each.seconds > 0 and each.evidence.ids.max() < 40 for each in seen)  # type: ignore[union-attr]
