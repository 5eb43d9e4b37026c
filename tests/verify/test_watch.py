from __future__ import annotations

import pytest
from tests.scripted import END, VOCABULARY, JoinedMessages, ids, letter_tokenizer, scripted_answer
from tests.verify.scripted import CONTEXT, right_model

from borrador.draft.lookup import LookupDrafter
from borrador.draft.protocol import Drafter
from borrador.draft.recycle import RecycleDrafter
from borrador.engine.llm import LLM
from borrador.models.scripted import ScriptedModel
from borrador.models.target import Rows
from borrador.types import SamplingParams
from borrador.verify.watch import WatchedModel

PROMPT = "abcabcab"


def watched_llm(model: ScriptedModel, draft_tokens: int = 4) -> tuple[WatchedModel, LLM]:
    watched = WatchedModel(model)
    # the second asks for more of a pass than plain decoding does
    drafters: list[Drafter] = [LookupDrafter(), RecycleDrafter()]
    template = JoinedMessages()
    return watched, LLM(
        watched, letter_tokenizer(), template, drafters, context_length=CONTEXT, draft_tokens=draft_tokens
    )


PARAMS = (SamplingParams(max_tokens=30), SamplingParams(temperature=0.4, seed=4, max_tokens=99, ignore_eos=True))


@pytest.mark.parametrize("params", PARAMS)
def test_every_token_comes_with_the_logit_that_its_prefix_gives_it(params: SamplingParams) -> None:
    model = right_model()
    watched, llm = watched_llm(model)
    for speculate in (False, True):
        answer = llm.generate(PROMPT, params, speculate=speculate)
        assert len(answer.token_ids) == params.max_tokens
        choices = watched.choices(len(PROMPT), answer.token_ids)
        assert [choice.token for choice in choices] == list(answer.token_ids)
        context = [*ids(PROMPT), *answer.token_ids]
        for index, choice in enumerate(choices, len(PROMPT)):
            assert choice.logit == float(model.logits_after(context[:index])[context[index]])


@pytest.mark.parametrize("params", PARAMS)
def test_an_answer_has_the_same_choices_with_and_without_drafts(params: SamplingParams) -> None:
    watched, llm = watched_llm(right_model())
    plain = llm.generate(PROMPT, params, speculate=False)
    before = watched.choices(len(PROMPT), plain.token_ids)
    drafted = llm.generate(PROMPT, params)
    assert drafted.stats.draft_tokens_accepted > 0
    assert watched.choices(len(PROMPT), drafted.token_ids) == before


def test_the_token_that_ended_an_answer_is_a_choice_too() -> None:
    watched, llm = watched_llm(scripted_answer("abc", "de!"))
    answer = llm.generate("abc")
    *_, last = watched.choices(3, answer.token_ids, end_ids=(END, 0))
    assert (last.token, last.logit) == (END, 50.0)


def test_any_other_bit_of_a_row_gives_another_digest() -> None:
    model = ScriptedModel(VOCABULARY, seed=1)
    watched = WatchedModel(model)
    target = watched.open(8)
    digests = set()
    for _ in range(2):
        target.forward(Rows.chain([1]))
        target.commit([0])
        (choice,) = watched.choices(1, [4])
        digests.add(choice.logits)
        target.rewind(0)
        row = model.logits_after([1])
        row.view("uint32")[9] ^= 1
    assert len(digests) == 2
    assert choice.token == 4


def test_a_token_whose_row_was_never_computed_has_no_logit() -> None:
    (choice,) = WatchedModel(right_model()).choices(3, [1])
    assert choice.logit != choice.logit
