from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
from tests.scripted import letter_tokenizer

from borrador.draft.model import ModelDrafter
from borrador.draft.shortlist import Shortlist, automatic_size, frequent_tokens
from borrador.models.scripted import ScriptedModel
from borrador.models.target import Rows
from borrador.sampling.shaping import History, Shaper
from borrador.types import SamplingParams

SIZE = 16
COMMON = [0, 1, 2, 3, 4, 5]
MODEL = ScriptedModel(SIZE, seed=4)


def make_drafter(model: ScriptedModel = MODEL) -> ModelDrafter:
    shortlist = Shortlist(model, COMMON)
    return ModelDrafter("small", model, context_length=400, vocabulary_size=SIZE, shortlist=shortlist)


def listed_path(context: list[int], count: int, listed: set[int], params: SamplingParams) -> tuple[int, ...]:
    """What the draft model chooses where it knows these tokens alone."""
    path = list(context)
    for _ in range(count):
        logits = MODEL.logits_after(path).copy()
        logits[[token for token in range(SIZE) if token not in listed]] = -np.inf
        path.append(Shaper(params).choice(logits, History(path)))
    return tuple(path[len(context) :])


@pytest.mark.parametrize("params", [SamplingParams(), SamplingParams(temperature=1.5, seed=3)])
def test_the_common_tokens_and_those_of_the_text_are_proposed_and_no_others(params: SamplingParams) -> None:
    session = make_drafter().open(Shaper(params))
    context = [1, 9, 2]
    listed = {*COMMON, 9}
    for more in ([], [7], [12, 7, 3]):
        context += more
        listed.update(more)
        draft = session.propose(context, 6)
        assert draft.tokens == listed_path(context, 6, listed, params)
    assert not listed.issuperset(range(SIZE))


def test_q_is_zero_for_tokens_that_are_not_listed() -> None:
    draft = make_drafter().open(Shaper(SamplingParams(temperature=1.0))).propose([1, 9], 3)
    assert draft.q is not None
    for index in range(3):
        logits = MODEL.logits_after([1, 9, *draft.tokens[:index]]).astype(np.float64)
        expected = np.zeros(SIZE)
        expected[[*COMMON, 9]] = np.exp(logits[[*COMMON, 9]])
        np.testing.assert_allclose(draft.q[index], expected / expected.sum(), rtol=1e-5)
        assert (draft.q[index][[6, 7, 8, *range(10, SIZE)]] == 0.0).all()


def test_a_request_leaves_nothing_of_its_text_to_the_next() -> None:
    drafter = make_drafter()
    first = drafter.open(Shaper(SamplingParams()))
    first.propose([1, *range(6, 14)], 2)
    forgotten = weakref.ref(first._shortlist)
    first.close()
    del first
    gc.collect()
    assert forgotten() is None
    again = drafter.open(Shaper(SamplingParams())).propose([1, 2], 8)
    assert again.tokens == listed_path([1, 2], 8, set(COMMON), SamplingParams())


def test_a_text_of_rare_tokens_is_drafted_with_all_of_them_and_a_common_one_with_few_again() -> None:
    model = ScriptedModel(2000, seed=1)
    shortlist = Shortlist(model, range(50))
    target = model.open(2000)
    own = shortlist.open(target)
    context: list[int] = []
    proposed: list[set[int]] = []
    for more in (range(40), range(600, 620), [3] * 60):
        context += more
        own.follow(context)
        proposed.append(set(np.flatnonzero(np.isfinite(target.forward(Rows.chain([1]))[0])).tolist()))
    assert proposed == [set(range(50)), set(range(2000)), {*range(50), *range(600, 620)}]


def test_a_text_has_room_for_so_many_tokens_of_its_own() -> None:
    model = ScriptedModel(2000, seed=1)
    target = model.open(8)
    own = Shortlist(model, range(50)).open(target)
    own.follow([*range(100, 1900), *[1] * 400])
    assert not own.whole
    assert np.isfinite(target.forward(Rows.chain([1]))).sum() == 50 + 512


def test_the_price_is_that_of_a_step_with_the_common_tokens() -> None:
    drafter = make_drafter()
    assert drafter.price().token_s > 0.0
    (sequence,) = drafter._idle
    assert np.isfinite(sequence.target.forward(Rows.chain([1]))).sum() == len(COMMON)


def test_frequent_tokens_are_those_of_low_ids_and_those_that_steer() -> None:
    tokenizer = letter_tokenizer()
    assert frequent_tokens(tokenizer, 4, 16) == [0, 1, 2, 3, 15]
    assert frequent_tokens(tokenizer, 4, 15) == [0, 1, 2, 3]
    assert frequent_tokens(tokenizer, 99, 40) == list(range(16))


@pytest.mark.parametrize(
    ("vocabulary", "head_share", "size"),
    [(151936, 0.37, 32768), (151936, 0.12, 0), (262144, 0.6, 32768), (49152, 0.2, 0), (32000, 0.9, 0)],
)
def test_a_shortlist_is_made_unasked_where_it_saves_a_tenth(vocabulary: int, head_share: float, size: int) -> None:
    assert automatic_size(vocabulary, head_share) == size
