"""Whatever the parameters, whoever drafts: answers, log probabilities and errors are those of plain decoding."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.scripted import END, LETTERS, VOCABULARY, OracleDrafter, scripted_llm

from borrador.draft.lookup import LookupDrafter
from borrador.draft.model import ModelDrafter
from borrador.draft.protocol import Drafter
from borrador.engine.llm import LLM
from borrador.errors import UsageError
from borrador.models.scripted import ScriptedModel, ScriptedTarget
from borrador.types import SamplingParams

TOKENS = st.integers(0, END)
SHAPES = ["(ab|ba)c{1,3}(d|ee)[a-f]{4}", "[a-c]{3,9}(defg[a-d])*", "(abcde|abdce)(fghij|klmno)+", "a(b[ck]|d[ef])g?"]
OPTIONS: dict[str, st.SearchStrategy[Any]] = {
    "top_k": st.sampled_from([0, 1, 3, 7]),
    "typical_p": st.sampled_from([1.0, 0.9, 0.3]),
    "top_p": st.sampled_from([1.0, 0.9, 0.2]),
    "min_p": st.sampled_from([0.0, 0.1]),
    "repetition_penalty": st.sampled_from([1.0, 1.5, 0.7]),
    "presence_penalty": st.sampled_from([0.0, 1.0, -1.0]),
    "frequency_penalty": st.sampled_from([0.0, 0.7, -0.5]),
    "penalty_window": st.sampled_from([-1, 0, 1, 5, 64]),
    "logit_bias": st.dictionaries(TOKENS, st.sampled_from([-100.0, 5.0]), max_size=3),
    "banned_token_ids": st.lists(TOKENS, max_size=3),
    "allowed_token_ids": st.none() | st.lists(TOKENS, min_size=4, max_size=12),
    "stop_token_ids": st.lists(TOKENS, max_size=2),
    "stop": st.lists(st.text("abcde", min_size=1, max_size=3), max_size=2),
    "min_tokens": st.sampled_from([0, 1, 4, 9]),
    "max_tokens": st.sampled_from([9, 20, 60]),
    "logprobs": st.sampled_from([None, 0, 3]),
    "regex": st.none() | st.sampled_from(SHAPES),
    "seed": st.integers(0, 2**64 - 1),
    "temperature": st.sampled_from([0.0, 0.3, 1.0, 2.5]),
}


@st.composite
def params(draw: st.DrawFn) -> SamplingParams:
    """A few parameters that are not what they are unless told."""
    names = draw(st.lists(st.sampled_from(sorted(OPTIONS)), min_size=1, max_size=9, unique=True))
    given = {name: draw(OPTIONS[name]) for name in names}
    if "seed" not in given:
        given.pop("temperature", None)  # fresh draws are never the same
    try:
        return SamplingParams(**given)
    except UsageError:  # all allowed tokens are banned
        return SamplingParams()


def outcome(llm: LLM, prompt: str, params: SamplingParams, **how: bool) -> object:
    try:
        answer = llm.generate(prompt, params, **how)
    except UsageError as error:
        return str(error)
    return answer.token_ids, answer.text, answer.finish_reason, answer.logprobs


def often_right(answer: Sequence[int], start: int) -> Callable[[Sequence[int]], Sequence[int]]:
    def continuation(context: Sequence[int]) -> Sequence[int]:
        chance = random.Random(len(context))
        right = (*answer[len(context) - start :], END, 3, 4)
        return [token if chance.random() < 0.8 else chance.randrange(VOCABULARY) for token in right]

    return continuation


def drafters(kind: str, continuation: Callable[[Sequence[int]], Sequence[int]], seed: int) -> Sequence[Drafter]:
    if kind == "oracle":
        return [OracleDrafter(continuation)]
    size = VOCABULARY - 3 if kind == "narrow model" else VOCABULARY + 4
    model = ScriptedModel(size, seed=seed, memory=2)
    drafter = ModelDrafter(kind, model, context_length=60, vocabulary_size=VOCABULARY, end_ids=frozenset({END}))
    return [LookupDrafter(), drafter]


@pytest.mark.parametrize("kind", ["oracle", "narrow model", "wide model"])
@settings(max_examples=60)
@given(
    params=params(),
    prompt=st.text(LETTERS[:6], min_size=1, max_size=12),
    seed=st.integers(0, 99),
    context_length=st.sampled_from([20, 40, 256]),
    draft_tokens=st.integers(1, 9),
)
def test_no_draft_changes_what_comes_of_any_parameters(
    kind: str, params: SamplingParams, prompt: str, seed: int, context_length: int, draft_tokens: int
) -> None:
    model = ScriptedModel(VOCABULARY, seed=seed, memory=2)
    plain_llm = scripted_llm(model, context_length=context_length)
    plain = outcome(plain_llm, prompt, params, speculate=False)
    continuation = often_right(plain_llm._sequence.tokens[len(prompt) :], len(prompt))
    llm = scripted_llm(
        model, *drafters(kind, continuation, seed), context_length=context_length, draft_tokens=draft_tokens
    )
    assert outcome(llm, prompt, params) == plain
    assert outcome(llm, prompt, params) == plain
    assert isinstance(llm._sequence.target, ScriptedTarget)
    assert llm._sequence.target.tokens == llm._sequence.tokens
