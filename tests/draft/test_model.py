from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from borrador.draft.model import ModelDrafter, ModelDraftSession
from borrador.models.scripted import ScriptedModel, ScriptedTarget
from borrador.sampling.noise import FreshNoise
from borrador.sampling.shaping import History, Shaper
from borrador.types import Draft, SamplingParams

SIZE = 16


class OpenTargets(ScriptedModel):
    """Remembers the sequences it opened."""

    def __init__(self) -> None:
        super().__init__(SIZE, seed=4)
        self.targets: list[ScriptedTarget] = []

    def open(self, context_length: int) -> ScriptedTarget:
        self.targets.append(super().open(context_length))
        return self.targets[-1]


def make_drafter(model: ScriptedModel, context_length: int = 64, end_ids: frozenset[int] = frozenset()) -> ModelDrafter:
    return ModelDrafter("small", model, context_length=context_length, vocabulary_size=SIZE, end_ids=end_ids)


def greedy_path(model: ScriptedModel, context: Sequence[int], count: int) -> tuple[int, ...]:
    path = list(context)
    for _ in range(count):
        path.append(int(model.logits_after(path).argmax()))
    return tuple(path[len(context) :])


def test_greedy_drafts_are_the_models_own_continuation_whatever_was_accepted_before() -> None:
    model = ScriptedModel(SIZE, seed=4)
    session = make_drafter(model).open(Shaper(SamplingParams()))
    context = [1, 2, 3]
    generator = np.random.default_rng(0)
    for _ in range(12):
        draft = session.propose(context, 4)
        assert draft.tokens == greedy_path(model, context, 4)
        assert draft.q is None
        accepted = int(generator.integers(0, 5))
        committed = [*draft.tokens[:accepted], int(generator.integers(SIZE))]
        session.observe(committed)
        context.extend(committed)
        if len(context) > 50:
            break


def test_the_cache_is_brought_up_to_date_and_not_filled_again() -> None:
    model = OpenTargets()
    session = make_drafter(model).open(Shaper(SamplingParams()))
    first = session.propose([1, 2, 3], 3).tokens
    before = sum(len(rows.tokens) for rows in model.targets[0].passes)
    session.propose([1, 2, 3, *first, 7], 1)
    evaluated = sum(len(rows.tokens) for rows in model.targets[0].passes) - before
    assert evaluated == 2  # the last drafted token, which was never evaluated, and the bonus token


def test_the_next_request_starts_from_what_both_have_in_common() -> None:
    model = OpenTargets()
    drafter = make_drafter(model)
    session = drafter.open(Shaper(SamplingParams()))
    session.propose([1, 2, 3, 4, 5], 2)
    session.close()
    again = drafter.open(Shaper(SamplingParams()))
    before = sum(len(rows.tokens) for rows in model.targets[0].passes)
    assert again.propose([1, 2, 3, 9], 1).tokens == greedy_path(model, [1, 2, 3, 9], 1)
    assert sum(len(rows.tokens) for rows in model.targets[0].passes) - before == 1
    assert len(model.targets) == 1


def test_two_requests_at_once_have_a_sequence_each() -> None:
    model = OpenTargets()
    drafter = make_drafter(model)
    first, second = drafter.open(Shaper(SamplingParams())), drafter.open(Shaper(SamplingParams()))
    assert first.propose([1, 2], 2).tokens == greedy_path(model, [1, 2], 2)
    assert second.propose([3], 2).tokens == greedy_path(model, [3], 2)
    assert first.propose([1, 2, 5], 2).tokens == greedy_path(model, [1, 2, 5], 2)


def test_a_draft_ends_where_going_on_is_not_worth_it() -> None:
    model = OpenTargets()
    told: list[float] = []

    def go_on(confidence: float) -> bool:
        told.append(confidence)
        return len(told) < 3

    draft = make_drafter(model).open(Shaper(SamplingParams())).propose([1, 2], 6, go_on)
    assert draft.tokens == greedy_path(model, [1, 2], 3)
    assert draft.confidence == tuple(told)
    assert len(model.targets[0].passes) == 3


def test_confidence_is_the_draft_models_own_probability() -> None:
    model = ScriptedModel(SIZE, seed=4)
    for params in (SamplingParams(), SamplingParams(temperature=0.9, seed=3), SamplingParams(temperature=1.0)):
        draft = make_drafter(model).open(Shaper(params)).propose([1, 2], 3)
        for index, token in enumerate(draft.tokens):
            law = Shaper(SamplingParams(temperature=1.0)).law(
                model.logits_after([1, 2, *draft.tokens[:index]]), History()
            )
            assert draft.confidence[index] == pytest.approx(law.probability(token), rel=1e-5)


def test_what_is_unread_is_what_the_cache_lacks() -> None:
    for accepted, more, unread in ((3, [7], 2), (1, [9, 9, 9], 3), (0, [9], 1)):
        session = make_drafter(OpenTargets()).open(Shaper(SamplingParams()))
        assert session.unread([1, 2, 3]) == 3
        tokens = session.propose([1, 2, 3], 3).tokens
        assert session.unread([1, 2, 3, *tokens[:accepted], *more]) == unread


def test_seeded_drafts_use_the_targets_noise() -> None:
    model = ScriptedModel(SIZE, seed=4)
    params = SamplingParams(temperature=0.9, top_p=0.9, seed=77)
    path = [1, 2]
    for _ in range(3):
        path.append(Shaper(params).choice(model.logits_after(path), History(path)))
    draft = make_drafter(model).open(Shaper(params)).propose([1, 2], 3)
    assert draft.tokens == tuple(path[2:])
    assert draft.q is None


def test_q_is_the_law_that_was_sampled_from() -> None:
    model = ScriptedModel(SIZE, seed=4)
    params = SamplingParams(temperature=0.8, top_k=5)
    draft = make_drafter(model).open(Shaper(params)).propose([1, 2], 3)
    assert draft.q is not None
    for index in range(3):
        law = Shaper(params).law(model.logits_after([1, 2, *draft.tokens[:index]]), History())
        assert draft.q[index].tolist() == [law.probability(token) for token in range(SIZE)]
        assert draft.q[index, draft.tokens[index]] > 0.0


def test_sampled_drafts_follow_q() -> None:
    model = ScriptedModel(SIZE, seed=4)
    noise = FreshNoise(np.random.default_rng(11))
    session = make_drafter(model).open(Shaper(SamplingParams(temperature=1.0)), noise)
    draws = 4000
    counts = np.zeros(SIZE)
    for _ in range(draws):
        draft = session.propose([1, 2], 1)
        counts[draft.tokens[0]] += 1
    assert draft.q is not None
    expected = draws * draft.q[0].astype(np.float64)
    common = expected > 5.0  # of rarer tokens the statistic is no chi-square
    assert ((counts - expected) ** 2 / expected)[common].sum() < 56.5  # at most 15 degrees, p = 1e-6


@pytest.mark.parametrize(("length", "expected"), [(5, 4), (6, 3), (8, 1), (9, 0), (12, 0)])
def test_drafts_end_where_the_drafters_context_ends(length: int, expected: int) -> None:
    session = make_drafter(ScriptedModel(SIZE), context_length=8).open(Shaper(SamplingParams()))
    assert len(session.propose([1] * length, 4).tokens) == expected


def test_nothing_is_drafted_after_an_end_token() -> None:
    model = ScriptedModel(SIZE, seed=4)
    end = greedy_path(model, [1, 2], 2)[1]
    session = make_drafter(model, end_ids=frozenset({end})).open(Shaper(SamplingParams()))
    assert session.propose([1, 2], 6).tokens[-1] == end
    assert len(session.propose([1, 2], 6).tokens) <= 2


def test_padding_of_the_drafters_vocabulary_is_ignored() -> None:
    drafter = ModelDrafter("wide", ScriptedModel(40, seed=1), context_length=64, vocabulary_size=SIZE)
    for params in (SamplingParams(), SamplingParams(temperature=2.0), SamplingParams(temperature=2.0, seed=1)):
        draft = drafter.open(Shaper(params)).propose([1, 2], 20)
        assert max(draft.tokens) < SIZE


@pytest.mark.parametrize("params", [SamplingParams(), SamplingParams(temperature=1.0), SamplingParams(top_k=3)])
def test_a_token_that_the_drafter_lacks_ends_drafting_and_not_the_answer(params: SamplingParams) -> None:
    narrow = ScriptedModel(SIZE - 4, seed=1)
    session = ModelDrafter("narrow", narrow, context_length=64, vocabulary_size=SIZE).open(Shaper(params))
    assert len(session.propose([1, SIZE - 5], 3).tokens) == 3
    for context in ([1, SIZE - 5, SIZE - 4], [1, SIZE - 5, SIZE - 4, 2, 3]):
        assert session.propose(context, 3).tokens == ()


def test_an_interrupted_prefill_leaves_a_usable_sequence(monkeypatch: pytest.MonkeyPatch) -> None:
    model = OpenTargets()
    drafter = make_drafter(model, context_length=1400)
    session = drafter.open(Shaper(SamplingParams()))
    session.propose([1] * 1300, 1)
    session.close()
    session = drafter.open(Shaper(SamplingParams()))
    forward = ScriptedTarget.forward
    calls = iter((False, True))

    def interrupted(self: ScriptedTarget, rows):  # type: ignore[no-untyped-def]
        if next(calls):
            raise KeyboardInterrupt
        return forward(self, rows)

    monkeypatch.setattr(ScriptedTarget, "forward", interrupted)
    with pytest.raises(KeyboardInterrupt):
        session.propose([2] * 1300, 1)
    session.close()
    (sequence,) = drafter._idle
    assert sequence.tokens == model.targets[0].tokens


def test_an_interrupted_draft_leaves_a_usable_sequence(monkeypatch: pytest.MonkeyPatch) -> None:
    model = OpenTargets()
    drafter = make_drafter(model)
    session = drafter.open(Shaper(SamplingParams()))
    forward = ScriptedTarget.forward
    calls = 0

    def interrupted(self: ScriptedTarget, rows):  # type: ignore[no-untyped-def]
        nonlocal calls
        calls += 1
        if calls == 3:
            raise KeyboardInterrupt
        return forward(self, rows)

    monkeypatch.setattr(ScriptedTarget, "forward", interrupted)
    with pytest.raises(KeyboardInterrupt):
        session.propose([1, 2, 3], 5)
    session.close()
    again = drafter.open(Shaper(SamplingParams()))
    assert isinstance(again, ModelDraftSession)
    assert again.propose([1, 2, 3], 5).tokens == greedy_path(model, [1, 2, 3], 5)


def test_closing_the_drafter_closes_its_model() -> None:
    model = ScriptedModel(SIZE)
    make_drafter(model).close()
    assert model.closed


def test_measuring_a_step_leaves_nothing_in_the_cache() -> None:
    model = OpenTargets()
    drafter = make_drafter(model)
    price = drafter.price()
    assert price.token_s > 0.0
    assert price.context_token_s > 0.0
    assert model.targets[0].length == 0
    assert drafter.open(Shaper(SamplingParams())).propose([1, 2], 3).tokens == greedy_path(model, [1, 2], 3)


def alternatives_of(draft: Draft) -> list[tuple[int, int, float]]:
    """Parent, token and confidence of what stands behind the chain."""
    chain = draft.depth
    assert draft.parents is None or draft.parents[:chain] == tuple(range(-1, chain - 1))
    parents = draft.parents or tuple(range(-1, chain - 1))
    return list(zip(parents[chain:], draft.tokens[chain:], draft.confidence[chain:], strict=True))


@pytest.mark.parametrize("budget", [3, 4, 5, 9])
def test_second_likeliest_tokens_are_alternatives_behind_the_chain_at_the_price_of_no_pass(budget: int) -> None:
    model = OpenTargets()
    drafter = ModelDrafter("small", model, context_length=64, vocabulary_size=SIZE, alternatives=True)
    told = iter((True, True, False))
    draft = drafter.open(Shaper(SamplingParams())).propose([1, 2], budget, lambda _belief: next(told))
    assert draft.tokens[:3] == greedy_path(model, [1, 2], 3)
    assert draft.depth == 3
    assert len(model.targets[0].passes) == 3
    expected = []
    survival = 1.0
    for place in range(3):
        logits = model.logits_after([1, 2, *draft.tokens[:place]]).astype(np.float64)
        p = np.exp(logits) / np.exp(logits).sum()
        second = int(np.argsort(-p)[1])
        if p[second] >= 0.05:
            expected.append((survival * p[second], place - 1, second, p[second]))
        survival *= p.max()
    expected.sort(reverse=True)
    found = alternatives_of(draft)
    assert len(found) == min(len(expected), budget - 3)
    for (_, parent, token, belief), (found_parent, found_token, found_belief) in zip(expected, found, strict=False):
        assert (parent, token) == (found_parent, found_token)
        assert found_belief == pytest.approx(belief, rel=1e-4)


@pytest.mark.parametrize("params", [SamplingParams(temperature=1.0), SamplingParams(temperature=1.0, seed=3)])
def test_tokens_that_are_drawn_have_no_alternatives(params: SamplingParams) -> None:
    drafter = ModelDrafter(
        "small", ScriptedModel(SIZE, seed=4), context_length=64, vocabulary_size=SIZE, alternatives=True
    )
    draft = drafter.open(Shaper(params)).propose([1, 2], 9, lambda _belief: False)
    assert len(draft.tokens) == 1
    assert draft.parents is None
