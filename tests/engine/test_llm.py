from __future__ import annotations

import gc
import threading
from dataclasses import replace
from typing import Any

import pytest
from tests.batches import PATIENCE_S
from tests.scripted import VOCABULARY, JoinedMessages, OracleDrafter, ids, knows, scripted_answer, scripted_llm
from tests.text.vocabularies import byte_level

from borrador.draft.lookup import LookupDrafter
from borrador.draft.model import ModelDrafter
from borrador.engine.llm import LLM
from borrador.errors import ContextLengthError, ModelError, UsageError
from borrador.models.scripted import ScriptedModel, ScriptedTarget
from borrador.sampling.shaping import Shaper
from borrador.text.tokenizer import Tokenizer
from borrador.types import GenerationStats, Origin, SamplingParams


def target_of(llm: LLM) -> ScriptedTarget:
    target = llm._sequence.target
    assert isinstance(target, ScriptedTarget)
    return target


def test_generate_returns_the_answer_with_its_origins_and_costs() -> None:
    llm = scripted_llm(scripted_answer("abc", "defghi!"), OracleDrafter(knows(ids("defghi!"), 3)))
    completion = llm.generate("abc")
    assert completion.text == "defghi"
    assert completion.token_ids == tuple(ids("defghi"))
    assert completion.origins == (Origin.TARGET, *[Origin.DRAFT] * 4, Origin.BONUS)
    assert completion.finish_reason == "stop"
    stats = completion.stats
    assert (stats.prompt_tokens, stats.completion_tokens, stats.target_passes) == (3, 6, 3)
    assert (stats.draft_tokens_proposed, stats.draft_tokens_tested, stats.draft_tokens_accepted) == (5, 4, 4)
    assert stats.prefill_s > 0.0
    assert stats.decode_s > stats.forward_s > 0.0


def test_events_joined_are_the_completion() -> None:
    llm = scripted_llm(ScriptedModel(VOCABULARY, seed=2), LookupDrafter())
    params = SamplingParams(temperature=1.0, seed=8, max_tokens=30, stop=("aa", "lk"))
    completion = llm.generate("abcabc", params)
    with llm.stream("abcabc", params) as stream:
        events = list(stream)
    assert "".join(event.text for event in events) == completion.text
    assert tuple(token for event in events for token in event.token_ids) == completion.token_ids
    assert [event.finish_reason for event in events[:-1]] == [None] * (len(events) - 1)
    assert events[-1].finish_reason == completion.finish_reason
    records = [event.record for event in events if event.record is not None]
    assert [record.number for record in records] == list(range(1, len(records) + 1))
    assert sum(len(record.committed) for record in records) == len(completion.token_ids)


def test_an_answer_that_ends_at_once_is_one_closing_event() -> None:
    with scripted_llm(scripted_answer("abc", "!")).stream("abc") as stream:
        (event,) = stream
    assert (event.text, event.token_ids, event.finish_reason) == ("", (), "stop")
    assert event.record is not None
    assert event.record.committed == ()


def test_end_tokens_are_passed_over_on_request() -> None:
    completion = scripted_llm(scripted_answer("abc", "d!e")).generate(
        "abc", SamplingParams(ignore_eos=True, max_tokens=3)
    )
    assert completion.text == "de"
    assert completion.token_ids == tuple(ids("d!e"))
    assert completion.finish_reason == "length"


def test_an_answer_may_have_a_draft_length_of_its_own() -> None:
    llm = scripted_llm(ScriptedModel(VOCABULARY), OracleDrafter(lambda context: [1, 2, 3, 4, 5, 6]), draft_tokens=4)
    params = SamplingParams(max_tokens=12)
    answers = [llm.generate("abc", params, draft_tokens=count) for count in (None, 0, 2)]
    assert len({answer.token_ids for answer in answers}) == 1
    passes = [answer.stats.target_passes - 1 for answer in answers]  # the first has no draft
    assert [answer.stats.draft_tokens_proposed <= most * count for answer, most, count in
            zip(answers, (4, 0, 2), passes, strict=True)] == [True] * 3  # fmt: skip
    assert answers[0].stats.draft_tokens_proposed > answers[2].stats.draft_tokens_proposed > 0
    for wrong in (-1, 65, 1.5, True):
        with pytest.raises(UsageError, match="draft_tokens"):
            llm.generate("abc", params, draft_tokens=wrong)  # type: ignore[arg-type]


def test_plain_decoding_asks_no_drafter() -> None:
    drafter = OracleDrafter(lambda context: [1, 2, 3])
    llm = scripted_llm(ScriptedModel(VOCABULARY), drafter)
    plain = llm.generate("abc", SamplingParams(max_tokens=12), speculate=False)
    assert plain.stats.draft_tokens_proposed == 0
    assert drafter.observed == []
    assert plain.token_ids == llm.generate("abc", SamplingParams(max_tokens=12)).token_ids


@pytest.mark.parametrize(
    "params", [SamplingParams(max_tokens=50), SamplingParams(temperature=1.0, seed=3, max_tokens=50)]
)
def test_chosen_draft_lengths_never_change_the_answer(params: SamplingParams) -> None:
    model = ScriptedModel(VOCABULARY, seed=3, memory=2)
    small = ModelDrafter(
        "small", ScriptedModel(VOCABULARY, seed=3, memory=2), context_length=256, vocabulary_size=VOCABULARY
    )
    llm = scripted_llm(model, LookupDrafter(), small, draft_tokens=None)
    plain = llm.generate("abcabc", params, speculate=False)
    for _ in range(4):
        assert llm.generate("abcabc", params).token_ids == plain.token_ids


def test_messages_go_through_the_chat_template() -> None:
    llm = scripted_llm(scripted_answer("abcd", "ef!"))
    assert llm.generate([{"role": "user", "content": "ab"}, {"role": "user", "content": "cd"}]).text == "ef"
    kept_for_later: list[dict[str, str]] = [{"role": "user", "content": "abcd"}]
    assert llm.generate(kept_for_later).text == "ef"


def test_several_completions_share_the_prompts_cache_and_follow_their_seeds() -> None:
    llm = scripted_llm(ScriptedModel(VOCABULARY, seed=1), LookupDrafter())
    params = SamplingParams(temperature=1.2, seed=2**64 - 2, max_tokens=12, ignore_eos=True)
    several = llm.generate("abcdefgh", params, n=4)
    assert [completion.stats.prompt_tokens_cached for completion in several] == [0, 7, 7, 7]
    for completion, seed in zip(several, (2**64 - 2, 2**64 - 1, 0, 1), strict=True):
        assert completion.token_ids == llm.generate("abcdefgh", replace(params, seed=seed)).token_ids
    assert len({completion.token_ids for completion in several}) == 4
    assert len(llm.generate("abc", params, n=1)) == 1
    fresh = llm.generate("abc", SamplingParams(temperature=2.0, max_tokens=30, ignore_eos=True), n=2)
    assert fresh[0].token_ids != fresh[1].token_ids


@pytest.mark.parametrize(("n", "rule"), [(0, "from 1 to 128, got 0"), (129, "got 129"), (1.5, "whole number, got 1.5")])
def test_a_number_of_completions_outside_its_rule_is_refused(n: Any, rule: str) -> None:
    with pytest.raises(UsageError, match=f"n must be .*{rule}"):
        scripted_llm(ScriptedModel(VOCABULARY)).generate("abc", n=n)


def test_log_probabilities_come_with_every_token() -> None:
    llm = scripted_llm(scripted_answer("abc", "defghi!"), OracleDrafter(knows(ids("defghi!"), 3)))
    completion = llm.generate("abc", SamplingParams(logprobs=2))
    assert completion.logprobs is not None
    assert [report.token_id for report in completion.logprobs] == list(completion.token_ids)
    assert all(report.logprob == pytest.approx(0.0) and len(report.top) == 2 for report in completion.logprobs)
    assert llm.generate("abc").logprobs is None
    assert llm.generate("abcdefghi", SamplingParams(logprobs=0)).logprobs == ()


def test_parameters_that_do_not_fit_the_vocabulary_are_refused_before_anything_starts() -> None:
    llm = scripted_llm(ScriptedModel(VOCABULARY))
    for params in (SamplingParams(logit_bias={16: 1.0}), SamplingParams(allowed_token_ids=[15], min_tokens=1)):
        with pytest.raises(UsageError, match=r"vocabulary|left"):
            llm.stream("abc", params)
    assert target_of(llm).passes == []


def test_stop_tokens_are_not_part_of_the_answer() -> None:
    llm = scripted_llm(scripted_answer("abc", "defg!hi"))
    completion = llm.generate("abc", SamplingParams(stop_token_ids=ids("h"), ignore_eos=True))
    assert (completion.text, completion.token_ids, completion.finish_reason) == ("defg", tuple(ids("defg!")), "stop")


@pytest.mark.parametrize("prompt", ["", [], "???"])
def test_an_empty_prompt_is_refused(prompt: Any) -> None:
    with pytest.raises(UsageError, match="at least one token"):
        scripted_llm(ScriptedModel(VOCABULARY)).generate(prompt)


@pytest.mark.parametrize("prompt", [None, 5, b"abc", {"role": "user", "content": "abc"}])
def test_what_is_neither_text_nor_messages_is_no_prompt(prompt: Any) -> None:
    with pytest.raises(UsageError, match=f"text or a list of messages, got {type(prompt).__name__}"):
        scripted_llm(ScriptedModel(VOCABULARY)).generate(prompt)


def test_a_prompt_that_fills_the_context_is_refused() -> None:
    llm = scripted_llm(ScriptedModel(VOCABULARY, seed=1), context_length=8)
    with pytest.raises(ContextLengthError, match="shorter than the context of 8 tokens, it has 8"):
        llm.stream("abcdefgh")
    completion = llm.generate("abcdefg", SamplingParams(ignore_eos=True))
    assert (len(completion.token_ids), completion.finish_reason) == (1, "length")


def test_a_prompt_whose_length_alone_is_too_much_is_refused_before_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = Tokenizer.from_metadata(byte_level())
    llm = LLM(ScriptedModel(tokenizer.vocabulary_size), tokenizer, JoinedMessages(), context_length=8)
    monkeypatch.setattr(tokenizer, "encode", lambda *_arguments, **_more: pytest.fail("it was read"))
    longest = len("<|endoftext|>")
    with pytest.raises(ContextLengthError, match="shorter than the context of 8 tokens, it has at least 8"):
        llm.stream("a" * (7 * longest + 1))
    with pytest.raises(pytest.fail.Exception, match="it was read"):
        llm.stream("a" * 7 * longest)


def test_long_prompts_are_evaluated_in_chunks_without_logits() -> None:
    model = ScriptedModel(VOCABULARY, seed=1, memory=3)
    llm = scripted_llm(model, context_length=2000)
    prompt = "abcdefgh" * 160
    llm.generate(prompt, SamplingParams(max_tokens=1))
    shapes = [(len(rows.tokens), rows.logits_from) for rows in target_of(llm).passes]
    assert shapes == [(512, 512), (512, 512), (256, 255)]


def test_the_next_request_reuses_the_common_beginning() -> None:
    llm = scripted_llm(ScriptedModel(VOCABULARY, seed=1))
    params = SamplingParams(max_tokens=4, ignore_eos=True)
    first = llm.generate("abcdefgh", params)
    passes = target_of(llm).passes
    passes.clear()
    assert llm.generate("abcdefgh", params).token_ids == first.token_ids
    assert len(passes[0].tokens) == 1
    passes.clear()
    llm.generate("abcdxy" + "ab", params)
    assert len(passes[0].tokens) == 2


def test_closing_a_stream_leaves_the_model_ready() -> None:
    drafter = OracleDrafter(lambda context: [1, 2, 3])
    llm = scripted_llm(ScriptedModel(VOCABULARY, seed=1), drafter)
    params = SamplingParams(max_tokens=20, ignore_eos=True)
    expected = llm.generate("abc", params)
    stream = llm.stream("abc", params)
    for _ in range(5):
        next(stream)
    reasons = [stream.finish_reason]
    stream.close()
    stream.close()
    assert [*reasons, stream.finish_reason] == [None, "cancelled"]
    assert drafter.open_sessions == 0
    assert 0 < stream.stats.completion_tokens < 20
    assert target_of(llm).tokens == llm._sequence.tokens
    assert llm.generate("abc", params).token_ids == expected.token_ids


@pytest.mark.parametrize("error", [KeyboardInterrupt, ModelError("logits are not finite")])
@pytest.mark.parametrize("passes", [1, 2, 4])
def test_an_error_in_the_middle_leaves_the_model_ready(
    error: BaseException | type[BaseException], passes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    drafter = OracleDrafter(lambda context: [1, 2, 3])
    llm = scripted_llm(ScriptedModel(VOCABULARY, seed=1), drafter)
    params = SamplingParams(max_tokens=20, ignore_eos=True)
    expected = llm.generate("abc", params)
    target, forward, calls = target_of(llm), target_of(llm).forward, 0

    def failing(rows: Any) -> Any:
        nonlocal calls
        calls += 1
        logits = forward(rows)
        if calls == passes:
            raise error
        return logits

    monkeypatch.setattr(target, "forward", failing)
    with pytest.raises((KeyboardInterrupt, ModelError)):
        llm.generate("abcd", params)
    assert drafter.open_sessions == 0
    assert target.tokens == llm._sequence.tokens
    assert llm.generate("abc", params).token_ids == expected.token_ids


def test_two_threads_get_their_own_answers() -> None:
    llm = scripted_llm(ScriptedModel(VOCABULARY, seed=1), LookupDrafter())
    params = SamplingParams(max_tokens=60, ignore_eos=True)
    prompts = ["abc", "abcd", "bca", "mno"] * 3
    expected = {prompt: llm.generate(prompt, params).token_ids for prompt in prompts}
    answers: dict[int, tuple[int, ...]] = {}

    def ask(number: int) -> None:
        answers[number] = llm.generate(prompts[number], params).token_ids

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(len(prompts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {number: expected[prompt] for number, prompt in enumerate(prompts)}


def test_another_thread_waits_until_an_answer_is_finished() -> None:
    llm = scripted_llm(ScriptedModel(VOCABULARY, seed=1))
    params = SamplingParams(max_tokens=6, ignore_eos=True)
    stream = llm.stream("abc", params)
    next(stream)
    done = threading.Event()

    def ask() -> None:
        llm.generate("abd", params)
        done.set()

    thread = threading.Thread(target=ask)
    thread.start()
    assert not done.wait(0.05)
    list(stream)
    assert done.wait(PATIENCE_S)
    thread.join()


def test_a_second_answer_in_the_same_thread_is_an_error_and_not_a_deadlock() -> None:
    llm = scripted_llm(ScriptedModel(VOCABULARY, seed=1))
    params = SamplingParams(max_tokens=6, ignore_eos=True)
    stream = llm.stream("abc", params)
    next(stream)
    with pytest.raises(UsageError, match="one answer at a time"):
        llm.generate("abd", params)
    assert len(list(stream)) == 5
    llm.generate("abd", params)


def test_a_stream_that_is_dropped_ends_its_answer() -> None:
    drafter = OracleDrafter(lambda context: [1, 2, 3])
    llm = scripted_llm(ScriptedModel(VOCABULARY, seed=1), drafter)
    params = SamplingParams(max_tokens=20, ignore_eos=True)
    for _ in llm.stream("abc", params):
        break
    gc.collect()
    assert drafter.open_sessions == 0
    assert len(llm.generate("abd", params).token_ids) == 20


def test_parameters_of_another_type_are_refused() -> None:
    parameters: Any = {"max_tokens": 2}
    with pytest.raises(UsageError, match=r"params must be SamplingParams, got \{'max_tokens': 2\}"):
        scripted_llm(ScriptedModel(VOCABULARY)).generate("abc", parameters)


@pytest.mark.parametrize("token", [-1, VOCABULARY, "a", 1.0, None])
def test_token_ids_that_the_model_lacks_are_refused(token: Any) -> None:
    with scripted_llm(ScriptedModel(VOCABULARY)) as llm, pytest.raises(UsageError, match="token_id must be"):
        llm.token_text(token)


def test_speculate_is_a_truth_value() -> None:
    wrong: Any = "no"
    with (
        scripted_llm(ScriptedModel(VOCABULARY)) as llm,
        pytest.raises(UsageError, match="speculate must be true or false, got 'no'"),
    ):
        llm.generate("ab", speculate=wrong)


def test_leaving_the_context_closes_everything_even_with_an_unfinished_answer() -> None:
    model = ScriptedModel(VOCABULARY, seed=1)
    drafter = ModelDrafter("small", ScriptedModel(VOCABULARY), context_length=64, vocabulary_size=VOCABULARY)
    with scripted_llm(model, drafter) as llm:
        stream = llm.stream("abc", SamplingParams(ignore_eos=True))
        next(stream)
    assert model.closed
    assert list(stream) == []
    llm.close()
    with pytest.raises(UsageError, match="closed"):
        llm.generate("abc")


def test_a_stream_that_was_never_started_has_cost_nothing() -> None:
    stream = scripted_llm(ScriptedModel(VOCABULARY)).stream("abc")
    assert stream.stats == GenerationStats()
    stream.close()
    assert stream.finish_reason == "cancelled"
    assert list(stream) == []


def test_a_stream_says_why_it_ended() -> None:
    llm = scripted_llm(scripted_answer("abc", "def!"))
    for params, reason in ((SamplingParams(), "stop"), (SamplingParams(max_tokens=2), "length")):
        with llm.stream("abc", params) as stream:
            events = list(stream)
        assert stream.finish_reason == events[-1].finish_reason == reason


def test_texts_that_are_forgotten_are_read_again_as_a_whole() -> None:
    small = ModelDrafter("small", ScriptedModel(VOCABULARY, seed=3), context_length=64, vocabulary_size=VOCABULARY)
    unread: list[int] = []
    llm = scripted_llm(ScriptedModel(VOCABULARY, seed=2), small)
    params = SamplingParams(max_tokens=4)
    for forget in (False, False, True):
        if forget:
            llm.forget_texts()
        session = small.open(Shaper(params, prompt_length=6))
        unread.append(session.unread(ids("abcabc")))
        session.close()
        unread.append(llm.generate("abcabc", params).stats.prompt_tokens_cached)
    assert unread == [6, 0, 1, 5, 6, 0]


def test_texts_cannot_be_forgotten_while_an_answer_is_written() -> None:
    llm = scripted_llm(ScriptedModel(VOCABULARY, seed=2))
    with llm.stream("abc") as stream:
        next(stream)
        with pytest.raises(UsageError, match="another is unfinished"):
            llm.forget_texts()
    llm.forget_texts()
