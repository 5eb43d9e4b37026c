"""Answers of a real model that are written together: bit for bit those that each prompt gets alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from borrador.config import EngineConfig
from borrador.draft.lookup import LookupDrafter
from borrador.draft.model import ModelDrafter
from borrador.engine.llm import LLM
from borrador.engine.loading import Parts, open_parts
from borrador.errors import UsageError
from borrador.models.native import NativeModel
from borrador.types import Completion, SamplingParams

pytestmark = pytest.mark.real_model

COPY = "Repeat: one two three four five six seven. one two three four five six seven. one two three"
LONG = "A draft is cheap to write, and quick to check. " * 30
REQUESTS: list[tuple[str, SamplingParams]] = [
    ("The sky is blue because", SamplingParams(max_tokens=24)),
    (COPY, SamplingParams(max_tokens=32, logprobs=2)),
    ("A story about a fox:", SamplingParams(temperature=0.9, seed=4, max_tokens=24)),
    (LONG + "So a draft", SamplingParams(max_tokens=20)),
    (LONG + "And then the draft", SamplingParams(temperature=0.8, top_p=0.9, seed=5, max_tokens=24, logprobs=0)),
    ("Count: 1, 2, 3,", SamplingParams(max_tokens=40, stop=(" 9", "11"))),
    ("Two letters and a number:", SamplingParams(regex=r"[a-z]{2}-[0-9]{3}", temperature=1.0, seed=6)),
    (
        "A person as JSON:",
        SamplingParams(json_schema={"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}),
    ),
    (COPY, SamplingParams(repetition_penalty=1.2, penalty_window=-1, max_tokens=24, logprobs=1)),
    ("word " * 300, SamplingParams(max_tokens=1000)),  # ends with the context
    ("Yes or no?", SamplingParams(max_tokens=1)),
]
PROMPTS = [prompt for prompt, _ in REQUESTS]
PARAMS = [params for _, params in REQUESTS]


@pytest.fixture(scope="module")
def parts(model_path: Callable[[str], Path]) -> Iterator[Parts]:
    opened = open_parts(model_path("smollm2-135m"), EngineConfig(draft=("none",), context=384, profile=False))
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def alone(parts: Parts) -> list[Completion]:
    llm = parts.assemble()
    return [llm.generate(prompt, params, speculate=False) for prompt, params in REQUESTS]


def parts_of(completion: Completion) -> tuple[Any, ...]:
    return completion.token_ids, completion.text, completion.finish_reason, completion.logprobs


def same_model(parts: Parts) -> ModelDrafter:
    """The target as its own draft model: drafts are drawn or chosen, and mostly right."""
    assert isinstance(parts.model, NativeModel)
    size = parts.model.config.vocabulary_size
    return ModelDrafter("itself", parts.model, context_length=384, vocabulary_size=size)


@pytest.mark.parametrize("concurrent", [3, 16])
@pytest.mark.parametrize("drafting", ["plain", "lookup", "model", "by costs"])
def test_no_answer_depends_on_what_is_written_beside_it(
    parts: Parts, alone: list[Completion], concurrent: int, drafting: str
) -> None:
    drafters = {"plain": (), "model": (same_model(parts),)}.get(drafting, (LookupDrafter(),))
    llm = replace(parts, drafters=drafters).assemble(None if drafting == "by costs" else 3)
    assert [parts_of(one) for one in llm.generate_many(PROMPTS, PARAMS, concurrent=concurrent)] == [
        parts_of(one) for one in alone
    ]
    assert alone[9].finish_reason == "length"
    assert len(alone[9].token_ids) < 100


def test_several_answers_to_a_prompt_are_those_of_their_seeds(parts: Parts) -> None:
    llm = replace(parts, drafters=(LookupDrafter(),)).assemble(3)
    params = SamplingParams(temperature=1.0, seed=3, max_tokens=20, logprobs=1)
    several = llm.generate(LONG, params, n=4)
    expected = [llm.generate(LONG, replace(params, seed=3 + index), speculate=False) for index in range(4)]
    assert [parts_of(one) for one in several] == [parts_of(one) for one in expected]
    assert len({one.token_ids for one in several}) == 4


def test_a_request_that_fails_in_the_middle_changes_no_other(parts: Parts, alone: list[Completion]) -> None:
    def written() -> None:
        for index, event in stream:
            tokens[index].extend(event.token_ids)
            if index == 8 and len(tokens[8]) == 3:
                (member,) = (member for member in stream._batch._live if member.key == 8)
                monkey.setattr(member.session.state.rule, "accept", nothing_left)

    def nothing_left(*arguments: Any) -> Any:
        raise UsageError("nothing is left to choose")

    llm: LLM = replace(parts, drafters=(LookupDrafter(),)).assemble(3)
    tokens: list[list[int]] = [[] for _ in PROMPTS]
    stream = llm.stream_many(PROMPTS, PARAMS)
    with pytest.MonkeyPatch.context() as monkey, pytest.raises(UsageError, match="prompt 8: nothing is left"):
        written()
    for index, (found, completion) in enumerate(zip(tokens, alone, strict=True)):
        assert tuple(found) == completion.token_ids[: len(found) if index == 8 else None]
    assert 3 <= len(tokens[8]) < 24
    assert parts_of(llm.generate(*REQUESTS[8])) == parts_of(alone[8])
