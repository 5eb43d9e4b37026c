"""Answers of a given shape: as plain decoding under the same masks writes them, whoever drafts."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

import jsonschema
import numpy as np
import pytest
from tests.scripted import END, VOCABULARY, JoinedMessages, OracleDrafter, ids, scripted_answer, scripted_llm
from tests.text.vocabularies import byte_level

from borrador.draft.lookup import LookupDrafter
from borrador.draft.model import ModelDrafter
from borrador.draft.protocol import Drafter, GoOn, always
from borrador.draft.recycle import RecycleDrafter
from borrador.draft.suffix import SuffixDrafter
from borrador.engine.llm import LLM
from borrador.errors import UsageError
from borrador.models.scripted import ScriptedModel, ScriptedTarget
from borrador.text.tokenizer import Tokenizer
from borrador.types import Completion, Draft, Origin, SamplingParams

SHAPES: dict[str, Any] = {
    "finite": {"regex": "(ab|ba)c{1,3}(d|ee)[a-f]{4}"},
    "may end early": {"regex": "[a-c]{3,20}(defg[a-d])*"},
    "often forced": {"regex": "(abcde|abdce)(fghij|klmno)+"},
    "nested": {"grammar": 'start: pair\npair: "a" pair "b" | "c" | pair "d"'},
}
CHOICES: dict[str, Any] = {
    "greedy": {},
    "seeded": {"temperature": 1.1, "seed": 6},
    "shaped": {"temperature": 1.4, "top_k": 3, "top_p": 0.9, "seed": 7},
}
Continuation = Callable[[Sequence[int]], Sequence[int]]


def at_random(context: Sequence[int]) -> Sequence[int]:
    return [int(token) for token in np.random.default_rng(len(context)).integers(0, VOCABULARY, 5)]


def wrong(right: Continuation) -> Continuation:
    return lambda context: [(token + 1) % VOCABULARY for token in right(context)]


class TreeDrafter(OracleDrafter):
    """The right token among wrong ones, two levels deep."""

    def propose(self, context: Sequence[int], budget: int, go_on: GoOn = always) -> Draft:
        first, second = [*self.continuation(context), 0, 0][:2]
        tokens = ((first + 1) % VOCABULARY, first, second, (second + 1) % VOCABULARY, second)
        return Draft(tokens=tokens, parents=(-1, -1, 0, 1, 1), drafter=self.name)


class DrawnDrafter(OracleDrafter):
    """Tokens drawn at random, of which many do not fit."""

    def propose(self, context: Sequence[int], budget: int, go_on: GoOn = always) -> Draft:
        q = np.full((budget, VOCABULARY), 1.0 / VOCABULARY, np.float32)
        tokens = np.random.default_rng().integers(0, VOCABULARY, budget)
        return Draft(tokens=tuple(tokens.tolist()), q=q, drafter=self.name)


def small_model(name: str, seed: int) -> ModelDrafter:
    return ModelDrafter(
        name,
        ScriptedModel(VOCABULARY, seed=seed),
        context_length=200,
        vocabulary_size=VOCABULARY,
        end_ids=frozenset({END}),
    )


def drafters(right: Continuation) -> dict[str, Drafter]:
    return {
        "right": OracleDrafter(right),
        "wrong": OracleDrafter(wrong(right)),
        "random": OracleDrafter(at_random),
        "half right": OracleDrafter(lambda context: [*right(context)[:2], *at_random(context)]),
        "end first": OracleDrafter(lambda context: [END, *right(context)]),
        "over-long": OracleDrafter(lambda context: [*right(context), END, 3, 99] * 2, obedient=False),
        "tree": TreeDrafter(right),
        "lookup": LookupDrafter(),
        "recycle": RecycleDrafter(),
        "suffix": SuffixDrafter(),
        "model": small_model("model", 5),
        "same model": small_model("same model", 1),
    }


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("drafter", drafters(lambda context: ()))
def test_no_drafter_changes_an_answer_with_a_shape(shape: str, choice: str, drafter: str) -> None:
    params = SamplingParams(max_tokens=25, **SHAPES[shape], **CHOICES[choice])
    model = ScriptedModel(VOCABULARY, seed=1)
    for prompt in ("abc", "o", "abcdabcd"):
        plain = scripted_llm(model).generate(prompt, params, speculate=False)

        def right(context: Sequence[int], written: Completion = plain, start: int = len(prompt)) -> Sequence[int]:
            return written.token_ids[len(context) - start :]

        llm = scripted_llm(model, drafters(right)[drafter])
        answer = llm.generate(prompt, params)
        assert answer.token_ids == plain.token_ids
        assert (answer.text, answer.finish_reason) == (plain.text, plain.finish_reason)
        if shape != "nested" and answer.finish_reason == "stop":
            assert re.fullmatch(SHAPES[shape]["regex"], answer.text)
        cache = llm._sequence
        assert isinstance(cache.target, ScriptedTarget)
        assert cache.target.tokens == cache.tokens


def test_plain_decoding_takes_a_pass_for_every_token() -> None:
    llm = scripted_llm(ScriptedModel(VOCABULARY, seed=1), LookupDrafter())
    params = SamplingParams(regex="abcdefg")
    plain = llm.generate("o", params, speculate=False)
    assert plain.origins == (Origin.TARGET,) * 7
    assert plain.stats.target_passes == 7
    assert plain.stats.grammar_tokens == 0


def test_tokens_without_an_alternative_are_written_without_a_pass() -> None:
    llm = scripted_llm(scripted_answer("o", "abdefghjk"), LookupDrafter())
    answer = llm.generate("o", SamplingParams(regex="ab(c|d)efgh(i|j)[jk]"))
    assert answer.text == "abdefghjk"
    assert answer.origins == (
        Origin.TARGET,
        Origin.GRAMMAR,
        Origin.TARGET,
        *[Origin.GRAMMAR] * 4,
        Origin.TARGET,
        Origin.TARGET,
    )
    assert answer.stats.target_passes == 4
    assert answer.stats.grammar_tokens == 5
    target = llm._sequence.target
    assert isinstance(target, ScriptedTarget)
    assert [len(rows.tokens) for rows in target.passes] == [1, 2, 5, 1]
    assert [len(rows.tokens) - rows.logits_from for rows in target.passes] == [1, 1, 1, 1]


def test_an_answer_ends_with_its_shape_and_not_with_a_pass_more() -> None:
    llm = scripted_llm(scripted_answer("o", "abccc!"), LookupDrafter())
    answer = llm.generate("o", SamplingParams(regex="abcc"))
    assert (answer.text, answer.finish_reason) == ("abcc", "stop")
    assert answer.stats.target_passes == 1


@pytest.mark.parametrize(
    ("options", "text", "reason"),
    [
        ({"regex": "a+"}, "aaa", "stop"),
        ({"regex": "a+", "max_tokens": 3}, "aaa", "length"),
        ({"regex": "a+", "max_tokens": 2}, "aa", "length"),
        ({"regex": "aaa", "max_tokens": 3}, "aaa", "stop"),
        ({"regex": "aaaa", "max_tokens": 3}, "aaa", "length"),
        ({"regex": "aa", "min_tokens": 9}, "aa", "stop"),
        ({"regex": "a{3,5}", "stop": ("aa",)}, "", "stop"),
        ({"regex": "abcde", "stop": ("cd",)}, "ab", "stop"),
        ({"regex": "abcde", "stop": ("de",), "max_tokens": 4}, "abcd", "length"),
    ],
)
@pytest.mark.parametrize("speculate", [True, False])
def test_the_reason_for_an_end(options: dict[str, Any], text: str, reason: str, speculate: bool) -> None:
    llm = scripted_llm(scripted_answer("o", "aaa!"), OracleDrafter(lambda context: ids("abcde")))
    answer = llm.generate("o", SamplingParams(**options), speculate=speculate)
    assert (answer.text, answer.finish_reason) == (text, reason)
    follow_up = llm.generate("o", SamplingParams(max_tokens=5), speculate=speculate)
    assert follow_up.text == "aaa"


@pytest.mark.parametrize("drafter", ["random", "drawn", "model", "tree", "end first"])
def test_answers_without_a_seed_have_the_shape(drafter: str) -> None:
    options = {**drafters(lambda context: ids("abcdef")), "drawn": DrawnDrafter(lambda context: ())}
    llm = scripted_llm(ScriptedModel(VOCABULARY, seed=2), options[drafter])
    for shape in ("finite", "may end early", "often forced"):
        params = SamplingParams(temperature=1.0, max_tokens=200, **SHAPES[shape])
        for _ in range(5):
            assert re.fullmatch(SHAPES[shape]["regex"], llm.generate("abc", params).text)


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 8},
        "size": {"type": "integer", "minimum": -20, "maximum": 300},
        "kind": {"enum": ["hello", "help", 7, None]},
        "parts": {"type": "array", "items": {"$ref": "#/$defs/part"}, "maxItems": 2},
    },
    "required": ["name", "size", "parts"],
    "additionalProperties": False,
    "$defs": {"part": {"type": "object", "properties": {"then": {"type": "boolean"}}, "additionalProperties": False}},
}


@pytest.mark.parametrize("seed", range(12))
def test_a_model_of_random_bytes_writes_json_that_fits_the_schema(seed: int) -> None:
    tokenizer = Tokenizer.from_metadata(byte_level())
    model = ScriptedModel(tokenizer.vocabulary_size, seed=seed)
    other = ScriptedModel(tokenizer.vocabulary_size, seed=seed, memory=3)
    drafter = ModelDrafter("other", other, context_length=400, vocabulary_size=tokenizer.vocabulary_size)
    llm = LLM(model, tokenizer, JoinedMessages(), [drafter, LookupDrafter()], context_length=500, draft_tokens=3)
    params = SamplingParams(json_schema=SCHEMA, temperature=1.0, seed=seed, max_tokens=300)
    answer = llm.generate("the", params)
    assert answer.finish_reason == "stop"
    jsonschema.validate(json.loads(answer.text), SCHEMA)
    assert answer.token_ids == llm.generate("the", params, speculate=False).token_ids
    assert answer.stats.grammar_tokens > 15


def test_a_shape_that_cannot_be_enforced_is_refused_before_anything_starts() -> None:
    llm = scripted_llm(ScriptedModel(VOCABULARY), LookupDrafter())
    with pytest.raises(UsageError, match="regex cannot be enforced"):
        llm.stream("abc", SamplingParams(regex="(a"))
    target = llm._sequence.target
    assert isinstance(target, ScriptedTarget)
    assert target.passes == []


@pytest.mark.parametrize("choice", CHOICES.values(), ids=CHOICES)
def test_tokens_without_alternative_have_log_probabilities_too(choice: dict[str, Any]) -> None:
    llm = scripted_llm(ScriptedModel(VOCABULARY, seed=1), LookupDrafter())
    shape = SHAPES["often forced"]
    params = SamplingParams(**shape, **choice, repetition_penalty=1.3, logprobs=1, max_tokens=20)
    plain, drafted = llm.generate("abc", params, speculate=False), llm.generate("abc", params)
    assert drafted.token_ids == plain.token_ids
    assert drafted.logprobs == plain.logprobs
    assert drafted.logprobs is not None
    assert [report.token_id for report in drafted.logprobs] == list(drafted.token_ids)


def test_banned_tokens_are_banned_inside_a_shape() -> None:
    llm = scripted_llm(ScriptedModel(VOCABULARY, seed=1), LookupDrafter())
    answer = llm.generate("abc", SamplingParams(regex="[abc]{6}", banned_token_ids=ids("ac")))
    assert answer.text == "bbbbbb"
    with pytest.raises(UsageError, match="one token must be left to choose, and none is at position 3"):
        llm.generate("abc", SamplingParams(regex="a{6}", banned_token_ids=ids("a")))
    assert llm.generate("abc", SamplingParams(regex="a{6}")).text == "aaaaaa"


@pytest.mark.parametrize("speculate", [True, False])
def test_a_token_without_an_alternative_does_not_end_an_answer_too_early(speculate: bool) -> None:
    llm = scripted_llm(ScriptedModel(VOCABULARY, seed=1), LookupDrafter())
    shape: dict[str, Any] = {"regex": "abcdefg", "stop_token_ids": ids("c")}
    for min_tokens in (0, 2):
        answer = llm.generate("o", SamplingParams(min_tokens=min_tokens, **shape), speculate=speculate)
        assert (answer.text, answer.finish_reason) == ("ab", "stop")
    with pytest.raises(UsageError, match="one token must be left to choose, and none is at position 3"):
        llm.generate("o", SamplingParams(min_tokens=3, **shape), speculate=speculate)


ENDS: dict[str, dict[str, Any]] = {
    "shape": {"regex": "ab(c|d)[ef]", "min_tokens": 5},
    "stop string": {"regex": "ab(c|d)[ef]gg", "stop": ("ce", "de", "cf", "df"), "banned_token_ids": ids("g")},
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("choice", [*CHOICES.values(), {"temperature": 1.0}, {"temperature": 1.0, "lenience": 0.5}])
@pytest.mark.parametrize("drafter", drafters(lambda context: ()))
def test_it_does_not_matter_that_nothing_can_follow_the_end(end: str, choice: dict[str, Any], drafter: str) -> None:
    model = ScriptedModel(VOCABULARY, seed=1)
    params = SamplingParams(**ENDS[end], **choice)
    plain = scripted_llm(model).generate("o", params)
    llm = scripted_llm(model, drafters(lambda context: plain.token_ids[len(context) - 1 :])[drafter], draft_tokens=6)
    for _ in range(3):
        answer = llm.generate("o", params)
        assert answer.finish_reason == "stop"
        assert re.fullmatch("ab([cd][ef])?", answer.text)
        assert len(answer.token_ids) == 4
        if "temperature" not in choice or "seed" in choice:
            assert answer.token_ids == plain.token_ids


@pytest.mark.parametrize("choice", [{}, {"temperature": 1.0, "seed": 2}, {"temperature": 1.0}])
def test_a_draft_model_that_comes_to_a_dead_end_does_not_end_the_answer(choice: dict[str, Any]) -> None:
    params = SamplingParams(regex="a(b[ck]|de)f[gh]", banned_token_ids=ids("ck"), **choice)
    other = ScriptedModel(VOCABULARY, script=ids("oabcfg"))
    drafter = ModelDrafter("other", other, context_length=64, vocabulary_size=VOCABULARY)
    llm = scripted_llm(scripted_answer("o", "adefg"), drafter, draft_tokens=6)
    assert llm.generate("o", params).text == "adefg"
