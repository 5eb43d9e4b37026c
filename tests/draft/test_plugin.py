from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from importlib.metadata import EntryPoint
from typing import Any

import numpy as np
import pytest
from tests.batches import PATIENCE_S
from tests.scripted import VOCABULARY, scripted_llm

from borrador.draft import plugin as plugin_module
from borrador.draft.plugin import DrafterContext, PluginDrafter, check_draft
from borrador.draft.protocol import Price, StatelessSession, SuccessorLearner, always
from borrador.engine.loading import load
from borrador.engine.requests import Drafting
from borrador.errors import UsageError
from borrador.models.scripted import ScriptedModel
from borrador.sampling.shaping import Shaper
from borrador.types import Draft, SamplingParams

CONTEXT = DrafterContext(100, frozenset({3}), lambda text: [len(text)], str)
SHAPER = Shaper(SamplingParams(), prompt_length=1, end_ids=frozenset())


class Session(StatelessSession):
    """Proposes what `answer` gives."""

    def __init__(self, answer: Callable[[list[int], int], Any]) -> None:
        self.answer = answer
        self.observed: list[tuple[int, ...]] = []

    def propose(self, context: Sequence[int], budget: int, go_on: Any = always) -> Any:
        return self.answer(list(context), budget)

    def observe(self, committed: Sequence[int]) -> None:
        self.observed.append(tuple(committed))


class Plugin:
    name = "a name that nobody looks at"

    def __init__(self, answer: Callable[[list[int], int], Any], price: Any = None) -> None:
        self.answer = answer
        self.given_price = Price() if price is None else price
        self.sessions: list[Session] = []

    def open(self, shaper: Shaper) -> Session:
        self.sessions.append(Session(self.answer))
        return self.sessions[-1]

    def price(self) -> Any:
        return self.given_price

    def close(self) -> None:
        pass


def drafter(answer: Callable[[list[int], int], Any], price: Any = None, propose_s: float = PATIENCE_S) -> PluginDrafter:
    plugin = Plugin(answer, price)
    return PluginDrafter("plugin", lambda _context: plugin, CONTEXT, propose_s=propose_s)


def fail(_context: list[int], _budget: int) -> Any:
    raise RuntimeError("no idea\nat all")


def hang(_context: list[int], _budget: int) -> Any:
    while True:
        time.sleep(0.001)


def nonsense(*drafts: Any) -> list[Any]:
    return [pytest.param(lambda context, budget, given=given: given, id=repr(given)[:60]) for given in drafts]


BAD_PROPOSALS = [
    fail,
    *nonsense(
        None,
        [1, 2, 3],
        Draft(tokens=(1, 100)),
        Draft(tokens=(-1,)),
        Draft(tokens=(1.5,)),  # type: ignore[arg-type]
        Draft(tokens=("a",)),  # type: ignore[arg-type]
        Draft(tokens=5),  # type: ignore[arg-type]
        Draft(tokens=(1, 2), parents=(-1,)),
        Draft(tokens=(1, 2), parents=(-1, 1)),
        Draft(tokens=(1, 2), parents=(-2, -1)),
        Draft(tokens=(1, 1), parents=(-1, -1)),
        Draft(tokens=(1, 2), confidence=(0.5,)),
        Draft(tokens=(1,), confidence=(float("nan"),)),
        Draft(tokens=(1,), confidence=(2.0,)),
    ),
]


@pytest.mark.parametrize("answer", BAD_PROPOSALS)
def test_a_drafter_that_raises_or_proposes_what_is_no_draft_is_parked_with_a_message(
    answer: Callable[[list[int], int], Any], caplog: pytest.LogCaptureFixture
) -> None:
    parked = drafter(answer)
    session = parked.open(SHAPER)
    with caplog.at_level(logging.WARNING, "borrador"):
        assert session.propose([1, 2], 4) == Draft(drafter="plugin")
        assert session.propose([1, 2], 4) == Draft(drafter="plugin")
    assert len(caplog.records) == 1
    assert caplog.text.count("the drafter plugin is parked") == 1
    assert parked.open(SHAPER).propose([1], 4).tokens == ()
    session.observe([1])
    session.close()
    parked.close()


def test_a_drafter_that_hangs_is_given_up_after_its_budget() -> None:
    parked = drafter(hang, propose_s=0.05)
    session = parked.open(SHAPER)
    start = time.perf_counter()
    for _ in range(50):
        assert session.propose([1, 2], 4).tokens == ()
    assert parked.parked
    assert time.perf_counter() - start < PATIENCE_S
    parked.close()


def test_drafts_are_cut_to_the_budget_named_after_the_plugin_and_lose_their_q() -> None:
    q = np.full((3, 100), 0.01, np.float32)
    given = Draft(tokens=(np.int64(7), 8, 9), q=q, drafter="somebody", confidence=(0.5, 1.0, 0.25))
    kept = check_draft(given, "plugin", 2, 100)
    assert (kept.tokens, kept.parents, kept.q, kept.drafter) == ((7, 8), None, None, "plugin")
    assert all(type(token) is int for token in kept.tokens)
    assert kept.confidence[0] == 0.5
    assert 0.99 < kept.confidence[1] < 1.0  # certainty is for tokens without an alternative, which nobody can promise


@pytest.mark.parametrize("price", [(1.0,), ("a", "b"), (-1.0, 0.0), (float("nan"), 0.0), 3])
def test_a_price_that_is_none_parks(price: Any) -> None:
    assert drafter(lambda context, budget: Draft(), price).price() == Price()


def test_a_plugin_that_cannot_be_made_is_a_usage_error() -> None:
    def factory(_context: DrafterContext) -> Any:
        raise ImportError("no module named tea")

    with pytest.raises(UsageError, match="the drafter tea cannot be made: ImportError: no module named tea"):
        PluginDrafter("tea", factory, CONTEXT)


def test_sessions_that_learn_successors_are_told_them() -> None:
    class Learner(Session):
        successors = 4
        learnt: list[Any] = []  # noqa: RUF012 (shared on purpose)

        def learn_successors(self, context: Sequence[int], draft: Draft, best: Any) -> None:
            self.learnt.append((tuple(context), best))

    class Learning(Plugin):
        def open(self, shaper: Shaper) -> Session:
            return Learner(self.answer)

    learning = Learning(lambda context, budget: Draft())
    made = PluginDrafter("plugin", lambda _context: learning, CONTEXT)
    session = made.open(SHAPER)
    assert isinstance(session, SuccessorLearner)
    assert session.successors == 4
    session.learn_successors([1, 2], Draft(), "best")  # type: ignore[arg-type]
    assert Learner.learnt == [((1, 2), "best")]
    assert not isinstance(drafter(lambda context, budget: Draft()).open(SHAPER), SuccessorLearner)


@pytest.mark.parametrize("answer", [*BAD_PROPOSALS, lambda context, budget: Draft(tokens=(5,) * budget)])
@pytest.mark.parametrize("seed", [None, 7])
def test_answers_are_those_of_plain_decoding_whatever_a_plugin_does(
    answer: Callable[[list[int], int], Any], seed: int | None
) -> None:
    params = SamplingParams(max_tokens=24, seed=seed, temperature=0.0 if seed is None else 1.0)
    model = ScriptedModel(VOCABULARY)
    plain = scripted_llm(model).generate("abc", params)
    drafted = scripted_llm(model, drafter(answer), draft_tokens=4).generate("abc", params)
    assert drafted.token_ids == plain.token_ids


@pytest.mark.real_model
def test_a_plugin_of_another_package_drafts_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = EntryPoint("echo", "tests.draft.test_plugin:EchoDrafter", plugin_module.GROUP)
    monkeypatch.setattr("borrador.engine.loading.find_plugins", lambda: {"echo": entry})
    prompt = "a b c d a b c d a b c d a b"
    with load("smollm2-135m", "echo", draft_tokens=4, context=256, profile=False) as llm:
        answer = llm.generate(prompt, SamplingParams(max_tokens=16))
        assert answer.stats.draft_tokens_accepted > 4
        assert answer.token_ids == llm.generate(prompt, SamplingParams(max_tokens=16), speculate=False).token_ids
    missing = EntryPoint("echo", "tests.draft.test_plugin:Missing", plugin_module.GROUP)
    monkeypatch.setattr("borrador.engine.loading.find_plugins", lambda: {"echo": missing})
    with pytest.raises(UsageError, match="cannot be made"):
        load("smollm2-135m", "echo", context=256, profile=False)


class EchoDrafter:
    """The example of docs/drafters.md: what followed the last place where the last token stood."""

    name = "echo"

    def __init__(self, context: DrafterContext) -> None:
        self.context = context

    def open(self, shaper: Shaper) -> EchoSession:
        return EchoSession()

    def price(self) -> Price:
        return Price()

    def close(self) -> None:
        pass


class EchoSession(StatelessSession):
    def propose(self, context: Sequence[int], budget: int, go_on: Any = always) -> Draft:
        for place in range(len(context) - 2, -1, -1):
            if context[place] == context[-1]:
                return Draft(tokens=tuple(context[place + 1 : place + 1 + budget]), drafter="echo")
        return Draft(drafter="echo")


class SeparatingPlugin(Plugin):
    """Is told whose requests it drafts for."""

    def __init__(self) -> None:
        super().__init__(lambda _context, _budget: Draft(tokens=(1,)))
        self.namespaces: list[str] = []

    def open_in(self, namespace: str, shaper: Shaper) -> Session:
        self.namespaces.append(namespace)
        return self.open(shaper)


def test_a_plugin_that_separates_namespaces_is_told_them() -> None:
    plugin = SeparatingPlugin()
    llm = scripted_llm(ScriptedModel(VOCABULARY), PluginDrafter("one", lambda _: plugin, CONTEXT))
    with llm.serve(2) as batch:
        for key, namespace in enumerate(["red", "", "blue"]):
            batch.add(key, llm.prepare("abc", SamplingParams(max_tokens=3), Drafting()), namespace=namespace)
        while batch.is_busy:
            batch.step()
    assert sorted(plugin.namespaces) == ["", "blue", "red"]
    assert len(plugin.sessions) == 3
