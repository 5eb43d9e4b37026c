"""The long form of the promise of equal answers: a hundred prompts, two seeds, chains and trees, at temperature 1."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from borrador import SamplingParams
from borrador.config import EngineConfig
from borrador.draft.lookup import LookupDrafter
from borrador.draft.model import ModelDrafter
from borrador.draft.protocol import Drafter, GoOn, Price, always
from borrador.draft.recycle import RecycleDrafter
from borrador.engine.llm import LLM
from borrador.engine.loading import Parts, open_parts
from borrador.models.native import NativeModel
from borrador.models.target import Batch, BestTokens, CacheUsage, Rows, Target
from borrador.sampling.shaping import Shaper
from borrador.types import Completion, Draft, Float32Array

pytestmark = [pytest.mark.long, pytest.mark.real_model]

TASKS = (
    "Repeat this sentence three times: I like %s.",
    "Write a short poem about %s.",
    "List five facts about %s.",
    "Explain %s to a child.",
    "Write a letter to a friend about %s, and repeat the word %s often.",
    "Translate into French, then back: We talked about %s.",
    "Ask three questions about %s and answer them.",
    "Write a Python function whose name has to do with %s.",
    "Complete this: %s, %s, %s,",
    "Give a table with two columns about %s.",
)
TOPICS = ("rain", "old maps", "a lighthouse", "bread", "the number seven", "owls", "trains", "salt", "a violin", "moss")
PROMPTS = [task.replace("%s", topic) for task, topic in itertools.product(TASKS, TOPICS)]
SEEDS = (11, 12)


class LookupTrees:
    """Proposes all that followed earlier occurrences of the last token, the latest first, as one tree."""

    name = "trees"

    def open(self, _shaper: Shaper, /) -> LookupTrees:
        return self

    def price(self) -> Price:
        return Price()

    def unread(self, _context: Sequence[int]) -> int:
        return 0

    def propose(self, context: Sequence[int], budget: int, _go_on: GoOn = always) -> Draft:
        places: dict[tuple[int, ...], int] = {(): -1}
        tokens: list[int] = []
        parents: list[int] = []
        for end in range(len(context) - 1, 0, -1):
            if context[end - 1] != context[-1]:
                continue
            for length in range(1, len(context[end : end + 4]) + 1):
                path = tuple(context[end : end + length])
                if path not in places and len(tokens) < budget:
                    places[path] = len(tokens)
                    tokens.append(path[-1])
                    parents.append(places[path[:-1]])
        return Draft(tokens=tuple(tokens), parents=tuple(parents), drafter=self.name)

    def observe(self, committed: Sequence[int]) -> None:
        pass

    def close(self) -> None:
        pass


class DisturbedModel:
    """The target as a draft model of itself that is often wrong: its logits are disturbed."""

    def __init__(self, model: NativeModel) -> None:
        self._model = model

    def open(self, context_length: int) -> Target:
        return _DisturbedSequence(self._model.open(context_length))

    def limit_cache(self, limit_bytes: int | None) -> None:
        self._model.limit_cache(limit_bytes)

    def cache_usage(self) -> CacheUsage:
        return self._model.cache_usage()

    def cache_bytes(self, tokens: int) -> int:
        return self._model.cache_bytes(tokens)

    def forward(self, batch: Batch) -> Sequence[Float32Array]:
        return [sequence.forward(rows) for sequence, rows in batch]

    def best(
        self, batch: Batch, count: int, *, within: int | None = None, normalised: bool = False
    ) -> Sequence[BestTokens]:
        return [sequence.best(rows, count, within=within, normalised=normalised) for sequence, rows in batch]

    def close(self) -> None:
        self._model.close()


class _DisturbedSequence:
    def __init__(self, target: Target) -> None:
        self._target = target
        self._random = np.random.default_rng(5)

    @property
    def vocabulary_size(self) -> int:
        return self._target.vocabulary_size

    @property
    def context_length(self) -> int:
        return self._target.context_length

    @property
    def length(self) -> int:
        return self._target.length

    def forward(self, rows: Rows) -> Float32Array:
        logits = self._target.forward(rows)
        return logits + self._random.standard_normal(logits.shape, np.float32)

    def best(self, rows: Rows, count: int, *, within: int | None = None, normalised: bool = False) -> BestTokens:
        return self._target.best(rows, count, within=within, normalised=normalised)

    def commit(self, path: Sequence[int]) -> None:
        self._target.commit(path)

    def rewind(self, length: int) -> None:
        self._target.rewind(length)

    def assume(self, length: int) -> None:
        self._target.assume(length)

    def copy_from(self, source: Target, length: int) -> None:
        assert isinstance(source, _DisturbedSequence)
        self._target.copy_from(source._target, length)


def answer(llm: LLM, prompt: str, seed: int) -> Completion:
    params = SamplingParams(temperature=1.0, seed=seed, max_tokens=32)
    return llm.generate([{"role": "user", "content": prompt}], params)


def make_llm(parts: Parts, drafter: Drafter | None, draft_tokens: int) -> LLM:
    drafters = () if drafter is None else (drafter,)
    context_length = parts.context_length
    return LLM(
        parts.model,
        parts.tokenizer,
        parts.template,
        drafters,
        context_length=context_length,
        draft_tokens=draft_tokens,
    )


def small_drafter(parts: Parts, model: NativeModel) -> ModelDrafter:
    size = model.config.vocabulary_size
    ends = parts.tokenizer.eog_ids
    return ModelDrafter(
        "small", DisturbedModel(model), context_length=parts.context_length, vocabulary_size=size, end_ids=ends
    )


def test_a_hundred_prompts_have_equal_answers_with_any_drafter(model_path: Callable[[str], Path]) -> None:
    path = model_path("smollm2-135m")
    accepted, refused = Counter[str](), Counter[str]()
    assert len(set(PROMPTS)) == 100
    with closing(open_parts(path, EngineConfig(draft=("none",)))) as parts, closing(NativeModel.load(path)) as model:
        plain = make_llm(parts, None, 0)
        drafting = {
            "lookup": make_llm(parts, LookupDrafter(), 4),
            "recycle": make_llm(parts, RecycleDrafter(), 8),
            "small": make_llm(parts, small_drafter(parts, model), 4),
            "trees": make_llm(parts, LookupTrees(), 12),
        }
        for prompt, seed in itertools.product(PROMPTS, SEEDS):
            expected = answer(plain, prompt, seed)
            for name, llm in drafting.items():
                found = answer(llm, prompt, seed)
                assert found.token_ids == expected.token_ids
                assert (found.text, found.finish_reason) == (expected.text, expected.finish_reason)
                accepted[name] += found.stats.draft_tokens_accepted
                refused[name] += found.stats.draft_tokens_tested - found.stats.draft_tokens_accepted
    for name in drafting:
        assert accepted[name] > 50
        assert refused[name] > 50
