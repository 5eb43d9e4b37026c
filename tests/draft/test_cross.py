"""A draft model with another vocabulary than the target's."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.text.vocabularies import byte_level

from borrador import load
from borrador.draft.cross import CrossDrafter
from borrador.draft.model import ModelDrafter
from borrador.draft.protocol import GoOn, always
from borrador.draft.shortlist import Shortlist
from borrador.models.scripted import ScriptedModel
from borrador.sampling.shaping import Shaper
from borrador.text.tokenizer import Tokenizer
from borrador.types import Draft, SamplingParams

BYTES = Tokenizer.from_metadata(byte_level(pairs=[]))
WORDS = Tokenizer.from_metadata(byte_level())
END = "<|im_end|>"
TEXT = "the hello 1234 the hello 好 the"


def knowing(text: str, own: Tokenizer) -> ScriptedModel:
    """A model that writes this text and ends."""
    end = own.control_id(END)
    assert end is not None
    script = (*own.encode(text, specials=False), end)
    return ScriptedModel(own.vocabulary_size, script=script)


def open_drafter(own: Tokenizer, target: Tokenizer, text: str = TEXT) -> CrossDrafter:
    model = knowing(text, own)
    inner = ModelDrafter("small", model, context_length=200, vocabulary_size=own.vocabulary_size, end_ids=own.eog_ids)
    return CrossDrafter(inner, own, target)


def ids(text: str, tokenizer: Tokenizer) -> list[int]:
    return tokenizer.encode(text, specials=False)


def propose(own: Tokenizer, target: Tokenizer, begin: int, budget: int, go_on: GoOn = always) -> Draft:
    """A draft after the first tokens of the text."""
    return open_drafter(own, target).open(Shaper(SamplingParams())).propose(ids(TEXT, target)[:begin], budget, go_on)


def is_beginning(tokens: list[int], own: Tokenizer) -> bool:
    """The model that knows the text knows how it goes on after these."""
    return tokens == ids(TEXT, own)[: len(tokens)]


@pytest.mark.parametrize(("own", "target"), [(BYTES, WORDS), (WORDS, BYTES), (WORDS, WORDS)])
def test_what_the_draft_model_writes_is_proposed_in_the_targets_tokens(own: Tokenizer, target: Tokenizer) -> None:
    end = target.control_id(END)
    assert end is not None
    answer = [*ids(TEXT, target), end]
    for begin in range(2, len(answer)):
        draft = propose(own, target, begin, 60)
        if is_beginning(ids(target.decode(answer[:begin]), own), own):
            assert draft.tokens == tuple(answer[begin:]), begin
        assert draft.q is None
        assert len(draft.confidence) == len(draft.tokens)
        assert all(0.0 < belief < 1.0 for belief in draft.confidence)


def test_a_draft_has_no_more_tokens_than_are_wanted() -> None:
    answer = tuple(ids(TEXT, WORDS))
    for budget in range(7):
        tokens = propose(BYTES, WORDS, 2, budget).tokens
        assert len(tokens) <= budget
        assert tokens[:-1] == answer[2 : 1 + len(tokens)]
    assert tokens


def test_a_last_token_that_may_be_the_beginning_of_a_longer_one_is_believed_less() -> None:
    stop = iter((True, True, True, True, False))
    draft = propose(BYTES, WORDS, 1, 60, lambda _belief: next(stop))  # " hell" of " hello"
    assert WORDS.decode(draft.tokens) == " hell"
    assert draft.confidence[-1] == pytest.approx(0.75, rel=1e-3)
    assert min(propose(BYTES, WORDS, 1, 60).confidence) > 0.99


def test_confidences_multiply_to_the_probability_of_the_text() -> None:
    model = ScriptedModel(BYTES.vocabulary_size, seed=3, sharpness=6.0)
    letters = Shortlist(model, [*b" abcdefghijklmnopqrstuvwxyz"])
    inner = ModelDrafter("small", model, context_length=99, vocabulary_size=BYTES.vocabulary_size, shortlist=letters)
    plain = inner.open(Shaper(SamplingParams()))
    context = ids("the hello", WORDS)
    text = ids("the hello", BYTES)
    written = plain.propose(text, 90)
    draft = CrossDrafter(inner, BYTES, WORDS).open(Shaper(SamplingParams())).propose(context, 99)
    count = sum(len(WORDS.token_bytes(token)) for token in draft.tokens)
    expected = 0.75 * math.prod(written.confidence[:count])
    assert len(draft.tokens) > 1
    assert math.prod(draft.confidence) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(
    "params", [SamplingParams(), SamplingParams(temperature=1.0), SamplingParams(temperature=1, seed=1)]
)
def test_drafts_are_the_draft_models_likeliest_text_however_the_target_chooses(params: SamplingParams) -> None:
    session = open_drafter(BYTES, WORDS).open(Shaper(params))
    assert session.propose(ids("the", WORDS), 4) == propose(BYTES, WORDS, 1, 4)


def test_the_draft_model_reads_every_token_once_while_the_answer_grows() -> None:
    drafter = open_drafter(BYTES, WORDS, TEXT * 4)
    session = drafter.open(Shaper(SamplingParams()))
    answer = ids(TEXT * 4, WORDS)
    for end in range(1, len(answer), 3):
        assert session.unread(answer[:end]) <= 3 * 6
        session.propose(answer[:end], 1)
    session.close()


def test_an_interrupted_round_is_taken_up_again() -> None:
    drafter = open_drafter(BYTES, WORDS)
    session = drafter.open(Shaper(SamplingParams()))
    answer = ids(TEXT, WORDS)
    assert session.propose(answer[:4], 30).tokens[:3] == tuple(answer[4:7])
    assert session.propose(answer[:2], 30).tokens[:3] == tuple(answer[2:5])
    assert session.propose([], 3).tokens == ()
    session.close()
    again = drafter.open(Shaper(SamplingParams()))
    assert again.propose(answer[:3], 30).tokens[:3] == tuple(answer[3:6])


def test_a_drafter_costs_what_its_pieces_cost_and_closes_its_model() -> None:
    drafter = open_drafter(BYTES, WORDS)
    assert drafter.price().token_s > 0.0
    drafter.close()
    model = drafter.drafter.model
    assert isinstance(model, ScriptedModel)
    assert model.closed


@pytest.mark.real_model
def test_smollm_drafts_for_qwen(model_path: Callable[[str], Path]) -> None:
    target, small = (str(model_path(name)) for name in ("qwen2.5-coder-0.5b", "smollm2-135m"))
    prompts = "La capital de Italia es", "1, 2, 3, 4, 5, 6,", "写一首关于北京的诗。"
    with load(target, small, draft_tokens=4, context=512) as llm:
        accepted = 0
        for prompt in prompts:
            for params in (SamplingParams(max_tokens=24), SamplingParams(max_tokens=24, temperature=0.8, seed=2)):
                plain, drafted = llm.generate(prompt, params, speculate=False), llm.generate(prompt, params)
                assert drafted.token_ids == plain.token_ids
                accepted += drafted.stats.draft_tokens_accepted
    assert accepted > 30
