"""A draft model's keys and values have a limit; where it is reached requests go on without its drafts."""

from __future__ import annotations

import pytest
from tests.batches import run, tokens_of
from tests.scripted import VOCABULARY, ids, scripted_llm

from borrador.draft.model import ModelDrafter
from borrador.engine.cache_room import limited_caches
from borrador.engine.requests import Drafting
from borrador.models.scripted import ScriptedModel
from borrador.sampling.shaping import Shaper
from borrador.types import SamplingParams

GREEDY = SamplingParams(max_tokens=30, ignore_eos=True)
SEEDED = SamplingParams(temperature=0.8, seed=4, max_tokens=30, ignore_eos=True)
PROMPTS = ["abc", "abcabcab", "mnol", "cba" * 9, "k" * 40]


def small_model() -> ModelDrafter:
    return ModelDrafter("small", ScriptedModel(VOCABULARY, seed=3, memory=2), context_length=256, vocabulary_size=16)


@pytest.mark.parametrize("limit", [0, 5, 20, 60, 100, 150])
@pytest.mark.parametrize("draft_tokens", [None, 4])
def test_answers_are_those_of_plain_decoding_however_little_a_draft_model_may_hold(
    limit: int, draft_tokens: int | None
) -> None:
    drafter = small_model()
    llm = scripted_llm(ScriptedModel(VOCABULARY, seed=3, memory=3), drafter, draft_tokens=draft_tokens)
    params = [GREEDY, SEEDED]
    alone = [llm.generate(prompt, params[key % 2], speculate=False).token_ids for key, prompt in enumerate(PROMPTS)]
    with llm.serve(8) as batch:
        drafter.limit_cache(limit)
        for key, prompt in enumerate(PROMPTS):
            batch.add(key, llm.prepare(prompt, params[key % 2], Drafting()))
        events, errors = run(batch)
        assert not errors
        assert [tokens_of(events[key]) for key in range(len(PROMPTS))] == alone
        assert drafter.model.cache_usage().used_bytes <= limit
        assert limit < 60 or draft_tokens is None or batch.census.draft_rows > 0


def test_a_request_alone_goes_on_where_its_draft_model_has_no_memory() -> None:
    drafter = small_model()
    llm = scripted_llm(ScriptedModel(VOCABULARY, seed=3, memory=3), drafter, draft_tokens=4)
    plain = llm.generate("abcabcab", GREEDY, speculate=False)
    drafter.limit_cache(12)
    completion = llm.generate("abcabcab", GREEDY)
    assert completion.token_ids == plain.token_ids
    assert 0 < completion.stats.draft_tokens_proposed < 12


def test_idle_sequences_make_way_and_the_next_round_is_drafted_again() -> None:
    drafter = small_model()
    first, second = (drafter.open(Shaper(GREEDY)) for _ in range(2))
    first.propose(ids("abcdefgh"), 2)
    first.close()
    drafter.limit_cache(10)
    assert drafter.model.cache_usage().used_bytes >= 8
    context = ids("lmnolmno")
    assert second.propose(context, 2).tokens == ()
    assert second.propose(context, 2).tokens
    second.close()


def test_a_request_whose_draft_model_has_no_memory_rests_before_it_tries_again() -> None:
    drafter = small_model()
    session = drafter.open(Shaper(GREEDY))
    context = ids("lmnolmno")
    drafter.limit_cache(4)
    assert session.propose(context, 2).tokens == ()
    assert drafter.model.cache_usage().used_bytes == 0
    drafter.limit_cache(None)
    empty = 0
    while not session.propose(context, 2).tokens:
        empty += 1
    assert empty == 63


@pytest.mark.parametrize(("given", "expected"), [(1000, 1000), (100, 256), (512, 512)])
def test_a_draft_model_may_hold_as_many_tokens_as_its_target_and_one_answer_at_least(given: int, expected: int) -> None:
    drafter, target = small_model(), ScriptedModel(VOCABULARY)
    with limited_caches(target, [drafter], given, 256):
        assert target.cache_usage().limit_bytes == given
        assert drafter.model.cache_usage().limit_bytes == expected
    assert (target.cache_usage().limit_bytes, drafter.model.cache_usage().limit_bytes) == (None, None)


def test_half_of_what_is_free_is_shared_by_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("borrador.engine.cache_room.available_bytes", lambda: 8000)
    drafter, target = small_model(), ScriptedModel(VOCABULARY)
    with limited_caches(target, [drafter], None, 256):
        assert [each.cache_usage().limit_bytes for each in (target, drafter.model)] == [2000, 2000]
    with limited_caches(target, [], None, 256):
        assert target.cache_usage().limit_bytes == 4000
