"""Answers that are written together: each is the one its prompt gets alone, whatever happens to the others."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from tests.scripted import VOCABULARY, OracleDrafter, ids, scripted_llm

from borrador.draft.lookup import LookupDrafter
from borrador.draft.model import ModelDrafter
from borrador.draft.protocol import GoOn, always
from borrador.engine.llm import LLM
from borrador.engine.prompts import DEFAULT_CONCURRENT
from borrador.engine.reading import STEP_ROWS
from borrador.engine.stream import BatchStream
from borrador.errors import ContextLengthError, MemoryLimitError, ModelError, UsageError
from borrador.models.prefix import CachedSequence
from borrador.models.scripted import ScriptedModel, ScriptedTarget
from borrador.types import Completion, Draft, GenerationEvent, SamplingParams

PROMPTS = ["abc", "abcabcab", "o", "mnopq", "cba" * 9, "abcd", "a" * 40, "hgfedc", "abcabcabd"]
FREE = SamplingParams(max_tokens=30, ignore_eos=True)
MIXED = [
    FREE,
    SamplingParams(temperature=0.9, seed=5, max_tokens=40),
    SamplingParams(max_tokens=1),
    SamplingParams(repetition_penalty=1.4, penalty_window=9, max_tokens=25, ignore_eos=True, logprobs=2),
    SamplingParams(temperature=1.2, top_k=5, seed=2, max_tokens=50, stop=("ab", "k")),
    SamplingParams(max_tokens=40, stop_token_ids=ids("g")),
    SamplingParams(temperature=0.7, seed=9, max_tokens=33, ignore_eos=True, logprobs=0),
    SamplingParams(max_tokens=20, min_tokens=12, logit_bias={15: 9.0}),
    FREE,
]


class TreeDrafter(OracleDrafter):
    """Proposes a small tree, whatever the context."""

    def propose(self, context: Sequence[int], budget: int, go_on: GoOn = always) -> Draft:
        last = context[-1]
        tokens = tuple((last + step) % VOCABULARY for step in (1, 2, 3, 4))
        return Draft(tokens=tokens, parents=(-1, -1, 0, 1), drafter=self.name).first(budget)


def small_model() -> ModelDrafter:
    return ModelDrafter("small", ScriptedModel(VOCABULARY, seed=3, memory=2), context_length=256, vocabulary_size=16)


def make_llm(*drafters: Any, draft_tokens: int | None = 4, context_length: int = 256, seed: int = 3) -> LLM:
    model = ScriptedModel(VOCABULARY, seed=seed, memory=3)
    return scripted_llm(model, *drafters, context_length=context_length, draft_tokens=draft_tokens)


def model_of(llm: LLM) -> ScriptedModel:
    assert isinstance(llm._model, ScriptedModel)
    return llm._model


def parts_of(completion: Completion) -> tuple[object, ...]:
    return completion.text, completion.token_ids, completion.finish_reason, completion.logprobs


def idle_sequences_are_true(llm: LLM) -> None:
    for sequence in llm._sequences._idle:
        assert isinstance(sequence.target, ScriptedTarget)
        assert sequence.target.tokens == sequence.tokens


@pytest.mark.parametrize("concurrent", [1, 2, 4, 16])
@pytest.mark.parametrize("drafting", ["none", "lookup", "tree", "model", "all by costs", "lookup by costs"])
def test_each_answer_is_the_one_its_prompt_gets_alone(concurrent: int, drafting: str) -> None:
    every: dict[str, list[Any]] = {
        "none": [],
        "lookup": [LookupDrafter()],
        "tree": [TreeDrafter(lambda context: ())],
        "model": [small_model()],
        "all by costs": [LookupDrafter(), small_model()],
        "lookup by costs": [LookupDrafter()],
    }
    llm = make_llm(*every[drafting], draft_tokens=None if "costs" in drafting else 4)
    alone = [llm.generate(prompt, params, speculate=False) for prompt, params in zip(PROMPTS, MIXED, strict=True)]
    together = llm.generate_many(PROMPTS, MIXED, concurrent=concurrent)
    assert [parts_of(one) for one in together] == [parts_of(one) for one in alone]
    assert [one.stats.completion_tokens for one in together] == [len(one.token_ids) for one in alone]
    plain = llm.generate_many(PROMPTS, MIXED, concurrent=concurrent, speculate=False)
    assert [parts_of(one) for one in plain] == [parts_of(one) for one in alone]
    assert max(model_of(llm).batches, default=1) == min(concurrent, len(PROMPTS)) or concurrent == 1
    assert min(concurrent, len(PROMPTS)) <= len(llm._sequences._idle) <= concurrent
    idle_sequences_are_true(llm)


def test_one_list_of_parameters_or_one_for_all() -> None:
    llm = make_llm()
    params = SamplingParams(temperature=1.0, seed=4, max_tokens=9, ignore_eos=True)
    assert [len(one.token_ids) for one in llm.generate_many(PROMPTS, params)] == [9] * len(PROMPTS)
    shorter = [replace(params, max_tokens=count) for count in range(1, len(PROMPTS) + 1)]
    assert [len(one.token_ids) for one in llm.generate_many(PROMPTS, shorter)] == [*range(1, len(PROMPTS) + 1)]
    assert llm.generate_many([], params) == []
    assert llm.generate_many(["abc"])[0].token_ids == llm.generate("abc").token_ids


def test_answers_are_drawn_afresh_without_a_seed() -> None:
    llm = make_llm(LookupDrafter())
    params = SamplingParams(temperature=2.0, max_tokens=40, ignore_eos=True)
    assert len({one.token_ids for one in llm.generate_many(["abc"] * 6, params)}) == 6


def test_one_pass_serves_prompts_and_answers() -> None:
    llm = make_llm(context_length=512)
    prompts, params = ["abc", "b" * 300, "o"], [replace(FREE, max_tokens=count) for count in (12, 3, 3)]
    together = llm.generate_many(prompts, params)
    targets = [sequence.target for sequence in llm._sequences._idle]
    passes = [[len(rows.tokens) for rows in target.passes] for target in targets if isinstance(target, ScriptedTarget)]
    long, short, shortest = sorted(passes, key=sum, reverse=True)
    assert long == [STEP_ROWS - 3, 300 - (STEP_ROWS - 3), 1, 1]
    assert short == [3] + [1] * 11
    assert shortest == [1] * 3  # its prompt of one token had to wait for the rows of the second step
    assert model_of(llm).batches == [2, 3, 3, 3, 1][:4]
    alone = make_llm(context_length=512)
    assert [parts_of(one) for one in together] == [
        parts_of(alone.generate(prompt, of_prompt)) for prompt, of_prompt in zip(prompts, params, strict=True)
    ]


def test_prompts_that_begin_alike_are_evaluated_once() -> None:
    llm = make_llm(context_length=512)
    prompts = ["abcdefgh" * 20 + last for last in ("a", "bc", "d", "efg")]
    alone = [llm.generate(prompt, FREE) for prompt in prompts]
    fresh = make_llm(context_length=512)
    together = fresh.generate_many(prompts, FREE)
    assert [parts_of(one) for one in together] == [parts_of(one) for one in alone]
    assert [one.stats.prompt_tokens_cached for one in together] == [0, 160, 160, 160]
    idle_sequences_are_true(fresh)
    again = fresh.generate_many(prompts, FREE)
    assert [one.stats.prompt_tokens_cached for one in again] == [160, 161, 160, 162]
    assert [parts_of(one) for one in again] == [parts_of(one) for one in alone]


def test_a_request_does_not_wait_for_one_that_has_gone() -> None:
    llm = make_llm(context_length=1200)
    prompts = ["abcdefgh" * 100 + last for last in ("a", "bc")]
    with llm.stream_many(prompts, FREE) as stream:
        first = stream._batch
        stream.cancel(0)
        tokens = [event.token_ids[0] for _, event in stream]
    assert tuple(tokens) == llm.generate(prompts[1], FREE).token_ids
    assert not first.is_busy


def test_events_come_with_the_number_of_their_prompt() -> None:
    llm = make_llm(LookupDrafter())
    expected = llm.generate_many(PROMPTS, MIXED)
    events: list[list[GenerationEvent]] = [[] for _ in PROMPTS]
    order: list[int] = []
    with llm.stream_many(PROMPTS, MIXED, concurrent=4) as stream:
        for index, event in stream:
            events[index].append(event)
            order.append(index)
    for written, completion in zip(events, expected, strict=True):
        assert "".join(event.text for event in written) == completion.text
        assert written[-1].finish_reason == completion.finish_reason
        assert [event.finish_reason for event in written[:-1]] == [None] * (len(written) - 1)
        numbers = [event.record.number for event in written if event.record is not None]
        assert numbers == [*range(1, len(numbers) + 1)]
    assert order != sorted(order)


def test_costs_are_those_of_the_time_a_request_was_live() -> None:
    llm = make_llm()
    short, long = llm.generate_many(["abc", "bcd"], [replace(FREE, max_tokens=4), replace(FREE, max_tokens=30)])
    assert (short.stats.target_passes, long.stats.target_passes) == (4, 30)
    assert 0.0 < short.stats.decode_s < long.stats.decode_s
    assert short.stats.prefill_s == pytest.approx(long.stats.prefill_s)
    assert long.stats.decode_s > long.stats.forward_s > 0.0


@pytest.mark.parametrize("index", range(len(PROMPTS)))
def test_a_cancelled_answer_leaves_the_others_as_they_are(index: int) -> None:
    drafter = OracleDrafter(lambda context: [1, 2, 3])
    llm = make_llm(drafter)
    expected = [llm.generate(prompt, params) for prompt, params in zip(PROMPTS, MIXED, strict=True)]
    tokens: list[list[int]] = [[] for _ in PROMPTS]
    with llm.stream_many(PROMPTS, MIXED, concurrent=4) as stream:
        for number, (which, event) in enumerate(stream):
            if number == 12:
                stream.cancel(index)
                stream.cancel(index)
            assert number <= 12 or which != index
            tokens[which].extend(event.token_ids)
    for which, (written, completion) in enumerate(zip(tokens, expected, strict=True)):
        assert tuple(written) == completion.token_ids[: len(written) if which == index else None]
    assert drafter.open_sessions == 0
    idle_sequences_are_true(llm)


def break_step(stream: BatchStream, key: int, step: str, error: Exception, patch: pytest.MonkeyPatch) -> None:
    """Let a step of a live request's rounds raise from now on."""
    (member,) = (member for member in stream._batch._live if member.key == key)
    state = member.session.state
    owners: dict[str, tuple[Any, str]] = {
        "propose": (state.proposer, "gather"),
        "accept": (state.rule, "accept"),
        "take": (state.ending, "take"),
        "commit": (state.target, "commit"),
        "observe": (state.proposer, "observe"),
    }

    def failing(*arguments: Any, **options: Any) -> Any:
        raise error

    patch.setattr(*owners[step], failing)


@pytest.mark.parametrize("step", ["propose", "accept", "take", "commit", "observe"])
@pytest.mark.parametrize("error", [ModelError("the logits are not finite", "Load it again."), ValueError("x")])
def test_a_request_that_fails_in_the_middle_ends_alone(
    step: str, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    drafter = OracleDrafter(lambda context: [1, 2, 3])
    llm = make_llm(drafter)
    expected = [llm.generate(prompt, params) for prompt, params in zip(PROMPTS, MIXED, strict=True)]
    tokens: list[list[int]] = [[] for _ in PROMPTS]

    def write() -> None:
        stream = llm.stream_many(PROMPTS, MIXED)
        for number, (which, event) in enumerate(stream):
            tokens[which].extend(event.token_ids)
            if number == 20:
                break_step(stream, 3, step, error, monkeypatch)

    with pytest.raises(type(error), match="prompt 3: the logits" if isinstance(error, ModelError) else "x"):
        write()
    monkeypatch.undo()
    for which, (written, completion) in enumerate(zip(tokens, expected, strict=True)):
        if which == 3:
            assert 0 < len(written) < len(completion.token_ids)
        assert tuple(written) == completion.token_ids[: len(written) if which == 3 else None]
    assert drafter.open_sessions == 0
    assert len(PROMPTS) <= len(llm._sequences._idle) <= DEFAULT_CONCURRENT
    idle_sequences_are_true(llm)
    assert parts_of(llm.generate(PROMPTS[1], MIXED[1])) == parts_of(expected[1])


def test_an_answer_that_reaches_the_end_of_its_context_ends_beside_the_others() -> None:
    llm = make_llm(LookupDrafter(), context_length=48)
    prompts = ["a" * 40, "abc", "ab" * 23 + "c"]
    expected = [llm.generate(prompt, FREE, speculate=False) for prompt in prompts]
    assert [len(one.token_ids) for one in expected] == [8, 30, 1]
    together = llm.generate_many(prompts, FREE)
    assert [parts_of(one) for one in together] == [parts_of(one) for one in expected]
    assert [one.finish_reason for one in together] == ["length"] * 3


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_interrupted_pass_ends_all_answers_and_leaves_the_model_ready(
    error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    drafter = OracleDrafter(lambda context: [1, 2, 3])
    llm = make_llm(drafter)
    model, calls = model_of(llm), 0
    forward = ScriptedTarget.forward

    def failing(target: ScriptedTarget, rows: Any) -> Any:
        nonlocal calls
        calls += 1
        logits = forward(target, rows)
        if calls == 40:
            raise error
        return logits

    monkeypatch.setattr(ScriptedTarget, "forward", failing)
    with pytest.raises(error):
        llm.generate_many(PROMPTS, MIXED)
    monkeypatch.undo()
    assert drafter.open_sessions == 0
    idle_sequences_are_true(llm)
    assert not model.closed
    fresh = make_llm()
    assert [parts_of(one) for one in llm.generate_many(PROMPTS, MIXED)] == [
        parts_of(fresh.generate(prompt, params)) for prompt, params in zip(PROMPTS, MIXED, strict=True)
    ]


def test_leaving_the_loop_or_closing_the_llm_frees_everything() -> None:
    drafter, small = OracleDrafter(lambda context: [1, 2, 3]), small_model()
    llm = make_llm(drafter, small)
    with llm.stream_many(PROMPTS, FREE, concurrent=3) as stream:
        for _ in range(9):
            next(stream)
        assert drafter.open_sessions == 3
    assert drafter.open_sessions == 0
    assert len(small._idle) == 3
    assert list(stream) == []
    for _ in llm.stream_many(PROMPTS, MIXED):
        break
    gc.collect()
    assert drafter.open_sessions == 0
    unfinished = llm.stream_many(PROMPTS, MIXED)
    next(unfinished)
    with pytest.raises(UsageError, match="one answer at a time"):
        llm.generate("abc")
    llm.close()
    assert not unfinished._batch.is_busy
    assert drafter.open_sessions == -1  # none, and the drafter itself is closed
    assert list(unfinished) == []
    assert llm._sequences._idle == []
    with pytest.raises(UsageError, match="closed"):
        llm.generate_many(PROMPTS)


def test_a_cache_that_cannot_be_had_lets_requests_wait_for_those_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    llm = make_llm()
    model, opened = model_of(llm), 1
    expected = llm.generate_many(PROMPTS, MIXED, concurrent=1)

    def open_few(context_length: int) -> ScriptedTarget:
        nonlocal opened
        opened += 1
        if opened > 3:
            raise MemoryLimitError("no memory", "Wait.")
        return ScriptedTarget(model, context_length)

    monkeypatch.setattr(model, "open", open_few)
    assert [parts_of(one) for one in llm.generate_many(PROMPTS, MIXED)] == [parts_of(one) for one in expected]
    assert len(llm._sequences._idle) == 3
    llm._sequences._idle.clear()
    with pytest.raises(MemoryLimitError, match="prompt 0: no memory"):
        llm.generate_many(["abc"])


def test_what_is_wrong_with_one_prompt_says_which() -> None:
    llm = make_llm(context_length=16)
    wrong: Any = {"max_tokens": 3}
    cases: list[tuple[Any, Any, str]] = [
        (["abc", ""], None, "prompt 1: the prompt must hold at least one token"),
        (["abc", "b", "a" * 16], None, "prompt 2: a prompt must be shorter than the context of 16 tokens, it has 16"),
        (["abc", "b"], [FREE, SamplingParams(logit_bias={16: 1.0})], "prompt 1: .*vocabulary"),
        (["abc", "b"], wrong, r"prompt 0: params must be SamplingParams, got \{'max_tokens': 3\}"),
        ("abc", None, "prompts must be a list of prompts, got 'abc'"),
        (None, None, "prompts must be a list of prompts, got None"),
        ([{"role": "user", "content": "abc"}], None, "got a list with messages in it"),
        (["abc", "b"], [FREE], "one for each of the 2, got 1"),
    ]
    for prompts, params, rule in cases:
        with pytest.raises(UsageError, match=rule):
            llm.generate_many(prompts, params)
    with pytest.raises(ContextLengthError, match="prompt 0"):
        llm.stream_many(["a" * 20])
    assert model_of(llm).batches == []


@pytest.mark.parametrize("concurrent", [0, 257, 2.0, True, "4"])
def test_a_number_of_answers_at_a_time_outside_its_rule_is_refused(concurrent: Any) -> None:
    with pytest.raises(UsageError, match="concurrent must be"):
        make_llm().generate_many(["abc"], concurrent=concurrent)


def test_several_answers_to_one_prompt_are_written_together() -> None:
    llm = make_llm(LookupDrafter())
    params = SamplingParams(temperature=1.2, seed=7, max_tokens=20, ignore_eos=True)
    several = llm.generate("abcdefgh", params, n=5)
    assert max(model_of(llm).batches) == 5
    assert [one.token_ids for one in several] == [
        llm.generate("abcdefgh", replace(params, seed=7 + index)).token_ids for index in range(5)
    ]


def test_idle_sequences_are_given_to_the_prompt_that_shares_most() -> None:
    llm = make_llm()
    pool = llm._sequences
    held = [CachedSequence(llm._model.open(64)) for _ in range(3)]
    for sequence, tokens in zip(held, ([1, 2, 3], [1, 2, 3, 4, 5], [9, 9]), strict=True):
        sequence.tokens = list(tokens)
        pool.give_back(sequence)
    assert pool.take([1, 2, 3, 4, 7]) is held[1]
    assert pool.take([9, 1]) is held[2]
    assert pool.take([1, 2, 8]) is held[0]
