"""The round: whoever drafts, the answer is plain decoding's, and whatever breaks, the cache stays true."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.scripted import END, VOCABULARY, OracleDrafter, ids, knows, letter_tokenizer, scripted_answer

from borrador.draft.lookup import LookupDrafter
from borrador.draft.model import ModelDrafter
from borrador.draft.protocol import Drafter, DraftSession, GoOn, always
from borrador.draft.recycle import RecycleDrafter
from borrador.draft.suffix import SuffixDrafter
from borrador.engine.answer import Answer
from borrador.engine.fixed_length import FixedLength
from borrador.engine.proposer import Proposer
from borrador.engine.round import RoundState, play_round
from borrador.models.scripted import ScriptedModel, ScriptedTarget
from borrador.sampling.rules import rule_for
from borrador.sampling.shaping import Shaper
from borrador.text.detokenizer import Detokenizer
from borrador.types import Draft, Origin, SamplingParams, TokenLogprobs

PROMPT = [1, 2, 3]
SAMPLINGS = [
    SamplingParams(max_tokens=40),
    SamplingParams(temperature=0.9, seed=5, max_tokens=40),
    SamplingParams(temperature=1.3, top_k=6, top_p=0.9, min_p=0.05, seed=6, max_tokens=40),
    SamplingParams(repetition_penalty=1.4, frequency_penalty=0.3, penalty_window=9, max_tokens=40),
    SamplingParams(
        temperature=0.8,
        typical_p=0.9,
        presence_penalty=1.0,
        penalty_window=-1,
        logit_bias={2: 3.0},
        seed=7,
        max_tokens=40,
    ),
    SamplingParams(temperature=1.0, allowed_token_ids=(1, 2, 3, 4, 15), banned_token_ids=(3,), seed=8, max_tokens=40),
]


def make_state(
    model: ScriptedModel,
    params: SamplingParams,
    *drafters: Drafter,
    prompt: Sequence[int] = PROMPT,
    draft_tokens: int = 4,
    context_length: int = 256,
    end_ids: tuple[int, ...] = (END,),
) -> RoundState:
    end_ids = (*end_ids, *params.stop_token_ids)
    target, shaper = model.open(context_length), Shaper(params, prompt_length=len(prompt), end_ids=end_ids)
    sessions: dict[str, DraftSession] = {drafter.name: drafter.open(shaper) for drafter in drafters}
    capacity = min(params.max_tokens, context_length - len(prompt))
    detokenizer, least = Detokenizer(letter_tokenizer()), params.min_tokens
    answer = Answer(detokenizer, stop=params.stop, end_ids=end_ids, capacity=capacity, least=least)
    proposer = Proposer(sessions, FixedLength(tuple(sessions), draft_tokens), target.vocabulary_size)
    return RoundState(target=target, context=list(prompt), proposer=proposer, rule=rule_for(shaper), ending=answer)


def answer_of(state: RoundState) -> Answer:
    assert isinstance(state.ending, Answer)
    return state.ending


def finish(state: RoundState, check: Callable[[RoundState], None] = lambda state: None) -> list[int]:
    length = len(state.context)
    while answer_of(state).finish_reason is None:
        play_round(state)
        check(state)
    return state.context[length:]


def cache_is_true(state: RoundState) -> None:
    assert isinstance(state.target, ScriptedTarget)
    assert state.target.tokens == state.context[: state.target.length]
    assert state.target.length >= len(state.context) - 1


def always_wrong(answer: Sequence[int]) -> Callable[[Sequence[int]], Sequence[int]]:
    right = knows(answer, len(PROMPT))
    return lambda context: [(token + 1) % VOCABULARY for token in right(context)]


def at_random(context: Sequence[int]) -> Sequence[int]:
    return [int(token) for token in np.random.default_rng(len(context)).integers(0, VOCABULARY, 4)]


def half_right(answer: Sequence[int]) -> Callable[[Sequence[int]], Sequence[int]]:
    right = knows(answer, len(PROMPT))
    return lambda context: [*right(context)[:2], *at_random(context)]


def drafters_for(answer: Sequence[int]) -> dict[str, Drafter]:
    right = knows(answer, len(PROMPT))
    return {
        "right": OracleDrafter(right),
        "wrong": OracleDrafter(always_wrong(answer)),
        "random": OracleDrafter(at_random),
        "half right": OracleDrafter(half_right(answer)),
        "end first": OracleDrafter(lambda context: [END, *right(context)]),
        "over-long": OracleDrafter(lambda context: [*right(context), *range(VOCABULARY)] * 3, obedient=False),
        "nonsense": OracleDrafter(lambda context: [*right(context)[:1], -1, VOCABULARY, 2**40], obedient=False),
        "lookup": LookupDrafter(),
        "recycle": RecycleDrafter(),
        "suffix": SuffixDrafter(),
        "model": ModelDrafter(
            "model", ScriptedModel(VOCABULARY, seed=1, memory=2), context_length=200, vocabulary_size=VOCABULARY
        ),
        "same model": ModelDrafter(
            "same model", ScriptedModel(VOCABULARY, seed=1), context_length=200, vocabulary_size=VOCABULARY
        ),
    }


@pytest.mark.parametrize("params", SAMPLINGS)
@pytest.mark.parametrize("memory", [None, 2])
@pytest.mark.parametrize("drafter", drafters_for([]))
def test_no_drafter_changes_the_answer(params: SamplingParams, memory: int | None, drafter: str) -> None:
    model = ScriptedModel(VOCABULARY, seed=1, memory=memory)
    plain = finish(make_state(model, params, end_ids=()))
    assert len(plain) == params.max_tokens
    state = make_state(model, params, drafters_for(plain)[drafter], end_ids=())
    assert finish(state, cache_is_true) == plain
    if drafter == "right" or (drafter == "same model" and memory is None):
        assert state.rounds == 1 + -(-(params.max_tokens - 1) // 5)


@pytest.mark.parametrize("drafter", drafters_for([]))
def test_rejection_without_a_seed_keeps_the_cache_true(drafter: str) -> None:
    model = ScriptedModel(VOCABULARY, seed=1)
    params = SamplingParams(temperature=1.0, max_tokens=40)
    state = make_state(model, params, drafters_for([7] * 60)[drafter], end_ids=())
    assert len(finish(state, cache_is_true)) == params.max_tokens


def test_records_do_not_keep_the_drafts_probabilities() -> None:
    model = ModelDrafter("model", ScriptedModel(VOCABULARY), context_length=64, vocabulary_size=VOCABULARY)
    state = make_state(ScriptedModel(VOCABULARY, seed=1), SamplingParams(temperature=1.0), model, end_ids=())
    play_round(state)
    record = play_round(state)
    assert len(record.draft.tokens) == 4
    assert record.draft.q is None


def test_trees_are_verified_in_one_pass() -> None:
    model = ScriptedModel(VOCABULARY, seed=1)
    params = SamplingParams(max_tokens=30)
    plain = finish(make_state(model, params, end_ids=()))

    class TreeDrafter(OracleDrafter):
        def propose(self, context: Sequence[int], budget: int, go_on: GoOn = always) -> Draft:
            right = [*plain[len(context) - len(PROMPT) :], 0, 0][:2]
            wrong = (right[0] + 1) % VOCABULARY
            return Draft(tokens=(wrong, right[0], wrong, right[1]), parents=(-1, -1, 1, 1), drafter=self.name)

    state = make_state(model, params, TreeDrafter(lambda context: ()), end_ids=())
    assert finish(state, cache_is_true) == plain
    assert state.rounds < 15


def test_origins_tell_where_each_token_came_from() -> None:
    answer = ids("abcdefgh")
    script = ScriptedModel(VOCABULARY, script=[*PROMPT, *answer])
    wrong_third = OracleDrafter(lambda context: [1, 2, 9, 9] if len(context) == 4 else answer[len(context) - 3 :][:2])
    state = make_state(script, SamplingParams(max_tokens=8), wrong_third)
    records = [play_round(state) for _ in range(3)]
    target, drafted, bonus = Origin.TARGET, Origin.DRAFT, Origin.BONUS
    assert [record.origins for record in records] == [(target,), (drafted, drafted, target), (drafted, drafted, bonus)]
    assert [record.committed for record in records] == [(0,), (1, 2, 3), (4, 5, 6)]
    assert [record.verdict.tested for record in records] == [0, 3, 2]


@pytest.mark.parametrize("end", range(1, 9))
def test_an_end_token_anywhere_in_a_draft_ends_the_answer_there(end: int) -> None:
    answer = [*ids("abcdefghij")[:end], END, *ids("klm")]
    model = ScriptedModel(VOCABULARY, script=[*PROMPT, *answer])
    state = make_state(model, SamplingParams(max_tokens=60), OracleDrafter(knows(answer, 3)))
    assert finish(state) == answer[:end]
    assert answer_of(state).finish_reason == "stop"
    assert isinstance(state.target, ScriptedTarget)
    assert state.target.tokens == state.context[: state.target.length]


@pytest.mark.parametrize("end", range(1, 9))
def test_a_stop_string_anywhere_in_a_draft_ends_the_answer_there(end: int) -> None:
    letters = "abcdefghij"
    stop = letters[end - 1 : end + 1]
    model = scripted_answer("bcd", letters)
    state = make_state(model, SamplingParams(stop=(stop,), max_tokens=60), OracleDrafter(knows(ids(letters), 3)))
    texts = []
    while answer_of(state).finish_reason is None:
        play_round(state)
        texts.extend(answer_of(state).texts)
    assert "".join(texts) + answer_of(state).tail == letters[: end - 1]
    assert state.context[3:] == ids(letters[: end + 1])
    assert isinstance(state.target, ScriptedTarget)
    assert state.target.tokens == state.context[: state.target.length]


@pytest.mark.parametrize("end", range(1, 9))
def test_a_stop_token_anywhere_in_a_draft_ends_the_answer_there(end: int) -> None:
    answer = ids("abcdefghijk")
    model = ScriptedModel(VOCABULARY, script=[*PROMPT, *answer])
    params = SamplingParams(stop_token_ids=[answer[end]], max_tokens=60)
    state = make_state(model, params, OracleDrafter(knows(answer, 3)))
    assert finish(state, cache_is_true) == answer[:end]
    assert answer_of(state).finish_reason == "stop"


@pytest.mark.parametrize("min_tokens", range(1, 9))
@pytest.mark.parametrize("seed", [None, 4])
@pytest.mark.parametrize("drafter", ["right", "half right", "end first", "model"])
def test_no_token_ends_the_answer_before_its_least_length(min_tokens: int, seed: int | None, drafter: str) -> None:
    eager = SamplingParams(
        temperature=0.0 if seed is None else 0.9, seed=seed, logit_bias={END: 100}, min_tokens=min_tokens, max_tokens=20
    )
    model = ScriptedModel(VOCABULARY, seed=1)
    plain = finish(make_state(model, eager))
    assert len(plain) == min_tokens
    assert END not in plain
    assert finish(make_state(model, eager, drafters_for([*plain, END])[drafter]), cache_is_true) == plain


@pytest.mark.parametrize("min_tokens", range(9))
def test_stop_strings_are_looked_for_behind_the_least_length(min_tokens: int) -> None:
    letters = "abnabnabnabn"
    params = SamplingParams(stop="ab", min_tokens=min_tokens, max_tokens=12)
    state = make_state(scripted_answer("bcd", letters), params, OracleDrafter(knows(ids(letters), 3)))
    end = letters.index("ab", min_tokens) + 2
    assert finish(state, cache_is_true) == ids(letters[:end])


@pytest.mark.parametrize("room", range(1, 8))
def test_the_contexts_end_cuts_a_draft(room: int) -> None:
    model = ScriptedModel(VOCABULARY, seed=1)
    plain = finish(make_state(model, SamplingParams(max_tokens=20), end_ids=()))
    drafter = OracleDrafter(knows(plain, 3))
    state = make_state(model, SamplingParams(), drafter, context_length=3 + room, end_ids=())
    assert finish(state, cache_is_true) == plain[:room]
    assert answer_of(state).finish_reason == "length"


@pytest.mark.parametrize("drafter", drafters_for([]))
@pytest.mark.parametrize("params", [SAMPLINGS[0], SAMPLINGS[1], SAMPLINGS[4]])
def test_log_probabilities_are_plain_decodings_for_every_token(drafter: str, params: SamplingParams) -> None:
    def written(state: RoundState) -> list[TokenLogprobs]:
        reports: list[TokenLogprobs] = []
        while answer_of(state).finish_reason is None:
            record = play_round(state)
            reports.extend(record.verdict.logprobs[: len(record.committed)])
        return reports

    model, params = ScriptedModel(VOCABULARY, seed=1), replace(params, logprobs=3)
    state = make_state(model, params, end_ids=())
    plain = written(state)
    answer = state.context[3:]
    assert [report.token_id for report in plain] == answer
    for index, report in enumerate(plain):
        row = model.logits_after([*PROMPT, *answer[:index]]).astype(np.float64)
        law = row - np.log(np.exp(row).sum())
        assert report.logprob == pytest.approx(law[answer[index]], abs=1e-5)
        assert [token for token, _ in report.top] == np.argsort(-row, kind="stable")[:3].tolist()
    assert written(make_state(model, params, drafters_for(answer)[drafter], end_ids=())) == plain


@pytest.mark.parametrize("max_tokens", range(1, 8))
@pytest.mark.parametrize("drafter", ["right", "over-long", "half right"])
def test_max_tokens_is_kept_inside_a_draft(max_tokens: int, drafter: str) -> None:
    model = ScriptedModel(VOCABULARY, seed=1)
    plain = finish(make_state(model, SamplingParams(max_tokens=20), end_ids=()))
    state = make_state(model, SamplingParams(max_tokens=max_tokens), drafters_for(plain)[drafter], end_ids=())
    assert finish(state, cache_is_true) == plain[:max_tokens]
    assert answer_of(state).finish_reason == "length"


@pytest.mark.parametrize("max_tokens", range(1, 8))
def test_no_row_is_evaluated_that_the_answer_has_no_room_for(max_tokens: int) -> None:
    model = ScriptedModel(VOCABULARY, seed=1)
    state = make_state(model, SamplingParams(max_tokens=max_tokens), OracleDrafter(at_random), end_ids=())
    finish(state)
    assert isinstance(state.target, ScriptedTarget)
    rows_of_passes = [len(rows.tokens) for rows in state.target.passes[1:]]
    assert rows_of_passes[:1] == [min(5, max_tokens - 1)][: len(rows_of_passes)]
    assert all(rows <= max_tokens - 1 for rows in rows_of_passes)


@pytest.mark.parametrize("context_length", range(4, 14))
@pytest.mark.parametrize("drafter", ["right", "over-long", "wrong"])
def test_the_answer_ends_where_the_context_is_full(context_length: int, drafter: str) -> None:
    model = ScriptedModel(VOCABULARY, seed=1)
    params = SamplingParams(max_tokens=60)
    plain = finish(make_state(model, params, end_ids=()))
    state = make_state(model, params, drafters_for(plain)[drafter], context_length=context_length, end_ids=())
    assert finish(state, cache_is_true) == plain[: context_length - 3]
    assert answer_of(state).finish_reason == "length"


def test_an_end_token_counts_before_the_length_limit() -> None:
    answer = [*ids("abc"), END]
    model = ScriptedModel(VOCABULARY, script=[*PROMPT, *answer])
    state = make_state(model, SamplingParams(max_tokens=4), OracleDrafter(knows(answer, 3)))
    assert finish(state) == ids("abc")
    assert answer_of(state).finish_reason == "stop"


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
@pytest.mark.parametrize("step", ["propose", "forward", "accept", "take", "commit", "observe"])
def test_an_error_at_any_step_leaves_everything_as_before_the_round(step: str, error: type[BaseException]) -> None:
    model = ScriptedModel(VOCABULARY, seed=1)
    plain = finish(make_state(model, SamplingParams(max_tokens=20), end_ids=()))
    state = make_state(model, SamplingParams(max_tokens=20), OracleDrafter(knows(plain, 3)), end_ids=())
    play_round(state)
    play_round(state)
    context, cached = list(state.context), state.target.length
    owner: Any = {
        "propose": state.proposer,
        "forward": state.target,
        "accept": state.rule,
        "take": state.ending,
        "commit": state.target,
        "observe": state.proposer,
    }[step]
    working = getattr(owner, step)

    def failing(*arguments: Any, **options: Any) -> Any:
        if step in ("commit", "forward"):
            working(*arguments, **options)
        raise error

    setattr(owner, step, failing)
    with pytest.raises(error):
        play_round(state)
    assert state.context == context
    assert state.target.length == cached
    cache_is_true(state)
    setattr(owner, step, working)
    if step not in ("commit", "observe"):  # from there on the answer's text has grown, and the request is over
        assert finish(state, cache_is_true) == plain[len(context) - 3 :]


def test_an_interrupt_while_the_context_grows_takes_the_growth_back() -> None:
    class Interrupted(list[int]):
        def extend(self, tokens: Any) -> None:
            super().extend(tokens)
            raise KeyboardInterrupt

    model = ScriptedModel(VOCABULARY, seed=1)
    state = make_state(model, SamplingParams(max_tokens=20), end_ids=())
    play_round(state)
    context = list(state.context)
    state.context = Interrupted(context)
    with pytest.raises(KeyboardInterrupt):
        play_round(state)
    assert state.context == context
    cache_is_true(state)


def test_the_pending_tail_of_the_prompt_gives_the_first_token_without_another_pass() -> None:
    model = ScriptedModel(VOCABULARY, seed=1)
    state = make_state(model, SamplingParams(max_tokens=5), OracleDrafter(at_random), prompt=[1] * 40)
    record = play_round(state)
    assert isinstance(state.target, ScriptedTarget)
    assert [(len(rows.tokens), rows.logits_from) for rows in state.target.passes] == [(40, 39)]
    assert record.draft == Draft()
    assert record.origins == (Origin.TARGET,)


def test_every_session_observes_what_was_committed() -> None:
    answer = ids("abcdefgh")
    model = ScriptedModel(VOCABULARY, script=[*PROMPT, *answer])
    drafter = OracleDrafter(knows(answer, 3))
    finish(make_state(model, SamplingParams(max_tokens=8), drafter))
    assert [token for committed in drafter.observed for token in committed] == answer


@pytest.mark.parametrize("params", [SAMPLINGS[0], SAMPLINGS[2]])
def test_parts_of_a_round_are_timed_apart(params: SamplingParams, monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = map(float, range(100))
    monkeypatch.setattr("borrador.engine.round.time", SimpleNamespace(perf_counter=ticks.__next__))
    record = play_round(make_state(ScriptedModel(VOCABULARY), params))
    assert (record.draft_s, record.forward_s, record.sample_s, record.total_s) == (1.0, 1.0, 1.0, 5.0)
