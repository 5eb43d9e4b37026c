"""What one namespace writes is never drafted for another, found in a cache by it, or kept for it."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
from tests.batches import run, tokens_of
from tests.scripted import VOCABULARY, ids, scripted_llm

from borrador.draft.history import History
from borrador.draft.model import ModelDrafter
from borrador.draft.suffix import SuffixDrafter
from borrador.engine.batch import Batch
from borrador.engine.llm import LLM
from borrador.engine.requests import Drafting
from borrador.models.prefix import CachedSequence
from borrador.models.scripted import ScriptedModel
from borrador.types import SamplingParams

GREEDY = SamplingParams(max_tokens=12, ignore_eos=True)


def small_model() -> ModelDrafter:
    return ModelDrafter("small", ScriptedModel(VOCABULARY, seed=3, memory=2), context_length=256, vocabulary_size=16)


def make_llm(folder: Path) -> LLM:
    history = History("shared", "v" * 16, folder=folder)
    drafters = SuffixDrafter(history), small_model()
    return scripted_llm(ScriptedModel(VOCABULARY, seed=3, memory=3), *drafters)


def add(llm: LLM, batch: Batch, key: int, prompt: str, namespace: str) -> None:
    batch.add(key, llm.prepare(prompt, GREEDY, Drafting()), namespace=namespace)


def test_a_prompt_that_another_namespace_sent_is_read_anew(tmp_path: Path) -> None:
    llm = make_llm(tmp_path)
    with llm.serve(4) as batch:
        for key, namespace in enumerate(["red", "red", "blue", "", "blue", ""]):
            add(llm, batch, key, "abcdefgh" * 8, namespace)
            run(batch)
            cached = batch.stats(key).prompt_tokens_cached
            assert cached == (63 if key in (1, 4, 5) else 0)


def test_requests_that_are_written_together_share_within_a_namespace_alone(tmp_path: Path) -> None:
    llm = make_llm(tmp_path)
    with llm.serve(8) as batch:
        for key, namespace in enumerate(["red", "blue", "red", "blue"]):
            add(llm, batch, key, "abcdefgh" * 8, namespace)
        run(batch)
        assert [batch.stats(key).prompt_tokens_cached for key in range(4)] == [0, 0, 63, 63]


def test_a_draft_model_never_goes_on_from_what_another_namespace_left() -> None:
    drafter, unused = small_model(), CachedSequence(ScriptedModel(VOCABULARY).open(8))
    held = drafter._take("red")
    held.tokens[:] = [1, 2, 3]
    drafter.give_back(held)
    assert drafter._take("red") is held
    drafter.give_back(held)
    other = drafter._take("blue")
    assert (other.tokens, other.target.length, other.namespace) == ([], 0, "blue")
    drafter.give_back(other)
    assert drafter._take("").tokens == unused.tokens


def test_a_history_is_kept_for_those_without_a_namespace_alone(tmp_path: Path) -> None:
    llm = make_llm(tmp_path)
    with llm.serve(4) as batch:
        add(llm, batch, 0, "abcdabcd", "red")
        run(batch)
        assert list(tmp_path.glob("*.history")) == []
        add(llm, batch, 1, "mnolmnol", "")
        run(batch)
    assert len(list(tmp_path.glob("*.history"))) == 1


@pytest.mark.parametrize("seed", range(4))
def test_no_secret_is_drafted_for_another_namespace(seed: int, tmp_path: Path) -> None:
    """Each namespace writes with letters of its own, and one that both have: there a draft could change sides."""
    llm, chance = make_llm(tmp_path), random.Random(seed)
    own = {"red": "abc", "blue": "lmn"}
    params = {
        namespace: replace(GREEDY, logit_bias=dict.fromkeys(ids(letters + "e"), 99.0))
        for namespace, letters in own.items()
    }
    owners: dict[int, str] = {}
    with llm.serve(6) as batch:
        for key in range(250):
            owner = owners[key] = chance.choice(list(own))
            prompt = "".join(chance.choices(own[owner] + "e", k=chance.randint(1, 20)))
            batch.add(key, llm.prepare(prompt, params[owner], Drafting()), namespace=owner)
        events, errors = run(batch)
    assert not errors
    others, drafted = {"red": set(ids(own["blue"])), "blue": set(ids(own["red"]))}, 0
    for key, owner in owners.items():
        assert not others[owner] & set(tokens_of(events[key]))
        for draft in [event.record.draft for event in events[key] if event.record is not None]:
            assert not others[owner] & set(draft.tokens)
            drafted += len(draft.tokens)
    assert drafted > 1000
