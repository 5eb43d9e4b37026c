"""Hints save a draft model passes, and change nothing of what it proposes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from tests.grammar.shapes import open_matcher
from tests.scripted import VOCABULARY

from borrador.draft.few_rows import FewRows
from borrador.draft.model import ModelDrafter, ModelDraftSession
from borrador.draft.protocol import GoOn, Hint, HintTaker
from borrador.draft.shortlist import Shortlist
from borrador.models.scripted import ScriptedModel, ScriptedTarget
from borrador.sampling.noise import FreshNoise
from borrador.sampling.shaping import Shaper
from borrador.types import SamplingParams

SIZE = VOCABULARY
MODEL = ScriptedModel(SIZE, seed=4, memory=3)
PARAMS = {
    "greedy": SamplingParams(),
    "penalised": SamplingParams(repetition_penalty=1.3),
    "seeded": SamplingParams(temperature=0.9, top_p=0.95, seed=5),
    "drawn": SamplingParams(temperature=1.1, top_k=9),
}


def known(context: Sequence[int], path: Sequence[int], count: int) -> tuple[int, ...]:
    tokens = [*context, *path]
    for _ in range(count):
        tokens.append(int(MODEL.logits_after(tokens).argmax()))
    return tuple(tokens[len(context) + len(path) :])


def often_wrong(context: Sequence[int], path: Sequence[int], count: int) -> tuple[int, ...]:
    generator = np.random.default_rng([*context, *path])
    right = known(context, path, count)
    return tuple(token if generator.random() < 0.6 else int(generator.integers(SIZE)) for token in right)


HINTS: dict[str, Hint] = {
    "right": known,
    "often wrong": often_wrong,
    "unknown tokens": lambda context, path, count: (*known(context, path, 1), SIZE, -1)[:count],
    "over-long": lambda context, path, count: known(context, path, count + 5),
    "silent": lambda context, path, count: (),
}


class Steady(FewRows):
    """Passes that cost what they are said to."""

    def __init__(self, seconds: Sequence[float]) -> None:
        super().__init__()
        for rows, cost in enumerate(seconds, 1):
            super().observe(rows, cost)

    def observe(self, rows: int, seconds: float) -> None:
        pass


def open_session(params: SamplingParams, *hints: Hint, regex: str = "", short: bool = False) -> ModelDraftSession:
    shortlist = Shortlist(MODEL, range(0, SIZE, 2)) if short else None
    drafter = ModelDrafter("small", MODEL, context_length=60, vocabulary_size=SIZE, shortlist=shortlist)
    drafter.few_rows = Steady((1.0, 1.0, 1.0, 1.0))
    masks = open_matcher(SamplingParams(regex=regex), start=2) if regex else None
    session = drafter.open(Shaper(params, masks=masks), FreshNoise(np.random.default_rng(8)))
    session.use_hints(hints)
    return session


def passes(session: ModelDraftSession) -> list[int]:
    target = session._target
    assert isinstance(target, ScriptedTarget)
    return [len(rows.tokens) for rows in target.passes]


def above(least: float, told: list[float]) -> GoOn:
    def go_on(confidence: float) -> bool:
        told.append(confidence)
        return confidence > least

    return go_on


def assert_alike(make: Callable[..., ModelDraftSession], hint: Hint) -> None:
    """Through rounds in which tokens are accepted and refused: tokens, beliefs, laws, and what `go_on` is asked."""
    plain, hinted = make(), make(hint)
    generator = np.random.default_rng(2)
    context = [1, 2]
    for _ in range(14):
        budget, last = int(generator.integers(1, 9)), float(generator.random())
        asked: list[list[float]] = [[], []]
        drafts = [
            session.propose(context, budget, above(0.3 * last, told))
            for session, told in zip((plain, hinted), asked, strict=True)
        ]
        assert drafts[0].tokens == drafts[1].tokens
        assert drafts[0].confidence == drafts[1].confidence == tuple(asked[0]) == tuple(asked[1])
        assert (drafts[0].q is None) == (drafts[1].q is None)
        if drafts[0].q is not None and drafts[1].q is not None:
            np.testing.assert_array_equal(drafts[0].q, drafts[1].q)
        accepted = int(generator.integers(0, len(drafts[0].tokens) + 1))
        context += drafts[0].tokens[:accepted]
        context.append(int(generator.integers(SIZE - 1)))


@pytest.mark.parametrize("hint", HINTS)
@pytest.mark.parametrize("params", PARAMS)
@pytest.mark.parametrize("short", [False, True])
def test_drafts_are_the_same_with_and_without_hints(params: str, hint: str, short: bool) -> None:
    assert_alike(lambda *hints: open_session(PARAMS[params], *hints, short=short), HINTS[hint])


@pytest.mark.parametrize("hint", HINTS)
@pytest.mark.parametrize("params", PARAMS)
def test_drafts_under_a_grammar_are_the_same_with_and_without_hints(params: str, hint: str) -> None:
    for regex in ("(a|b)cdef(g|h|i)ij", "[a-f]{3}gh[a-e]+"):
        drafts = []
        for hints in ((), (HINTS[hint],)):
            draft = open_session(PARAMS[params], *hints, regex=regex).propose([14, 13], 9)
            drafts.append((draft.tokens, draft.confidence))
        assert drafts[0] == drafts[1]
        assert len(drafts[0][0]) > 3


def test_a_hint_that_holds_saves_passes_and_one_that_does_not_costs_none() -> None:
    for hint, expected in ((known, [4, 4, 3]), (HINTS["silent"], [2] + [1] * 9)):
        session = open_session(SamplingParams(), hint)
        assert len(session.propose([1, 2], 10).tokens) == 10
        assert passes(session) == expected
    wrong = open_session(SamplingParams(), lambda context, path, count: (_other(known(context, path, 1)[0]),))
    assert len(wrong.propose([1, 2], 10).tokens) == 10
    assert len(passes(wrong)) == 10


def _other(token: int) -> int:
    return (token + 1) % SIZE


def test_accepted_tokens_that_a_hint_evaluated_are_not_evaluated_again() -> None:
    session = open_session(SamplingParams(), known)
    context = [1, 2]
    draft = session.propose(context, 3)
    assert passes(session) == [4]
    session.use_hints(())
    session.propose([*context, *draft.tokens, 7], 1)
    assert passes(session) == [4, 2]  # the third token, which no pass evaluated, and the target's own


def test_hints_that_never_hold_are_evaluated_no_more_and_are_again_when_they_hold() -> None:
    drafter = ModelDrafter("small", MODEL, context_length=400, vocabulary_size=SIZE)
    drafter.few_rows = Steady((1.0, 1.2, 1.4, 1.6))
    session = drafter.open(Shaper(SamplingParams()))
    session.use_hints((lambda context, path, count: (_other(known(context, path, 1)[0]),),))
    session.propose([1], 40)
    assert max(passes(session)[-10:]) == 1
    session.use_hints((known,))
    session.propose([1, 2], 60)
    assert passes(session)[-2] == 4


def test_the_first_drafter_that_has_a_hint_is_heard() -> None:
    asked: list[str] = []

    def note(name: str, hint: Hint) -> Hint:
        def asking(context: Sequence[int], path: Sequence[int], count: int) -> tuple[int, ...]:
            asked.append(name)
            return hint(context, path, count)

        return asking

    hints = note("silent", HINTS["silent"]), note("right", known), note("never", known)
    open_session(SamplingParams(), *hints).propose([1, 2], 6)
    assert set(asked) == {"silent", "right"}


@pytest.mark.parametrize("length", range(52, 61))
def test_hints_never_exceed_the_drafters_context(length: int) -> None:
    for budget in range(1, 10):
        session = open_session(SamplingParams(), HINTS["over-long"])
        assert len(session.propose([1] * length, budget).tokens) == min(budget, 61 - length)


def test_an_interrupted_pass_with_a_hint_leaves_a_usable_sequence(monkeypatch: pytest.MonkeyPatch) -> None:
    drafter = ModelDrafter("small", MODEL, context_length=60, vocabulary_size=SIZE)
    for moment in ("best", "commit"):
        session = drafter.open(Shaper(SamplingParams()))
        session.use_hints((known,))
        session.propose([1, 2], 5)
        with monkeypatch.context() as patched:
            patched.setattr(ScriptedTarget, moment, _interrupt)
            with pytest.raises(KeyboardInterrupt):
                session.propose([1, 2, 3], 5)
        session.close()
        again = drafter.open(Shaper(SamplingParams()))
        assert again.propose([1, 2, 3], 5).tokens == known([1, 2, 3], (), 5)
        again.close()


def _interrupt(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def test_a_draft_session_takes_hints() -> None:
    assert isinstance(open_session(SamplingParams()), HintTaker)
