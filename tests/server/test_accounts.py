"""What an answer cost is counted by the definitions that go with the names."""

from __future__ import annotations

from tests.cli.scripted_llm import make_round

from borrador.server.accounts import Speculation, timings_of, usage_of
from borrador.types import GenerationEvent, GenerationStats, Origin, RoundRecord


def event(record: RoundRecord | None) -> GenerationEvent:
    return GenerationEvent(text="x", token_ids=(1,), origin=Origin.TARGET, round=1, record=record)


def test_acceptance_is_accepted_of_tested_and_lengths_count_the_bonus() -> None:
    speculation = Speculation()
    rounds = [make_round(1, (), 0, 1), make_round(2, (2, 3, 5, 6), 2, 4), make_round(3, (6, 7), 2, 8)]
    speculation.take([event(None), *map(event, rounds)])
    assert speculation.as_json() == {
        "num_drafts": 2,
        "num_draft_tokens": 6,
        "num_draft_tokens_tested": 5,
        "num_accepted_tokens": 4,
        "num_accepted_tokens_per_pos": [2, 2],
        "draft_acceptance_rate": 0.8,
        "mean_acceptance_length": 3.0,
    }


def test_what_was_not_measured_is_null() -> None:
    nothing = Speculation().as_json()
    assert nothing["draft_acceptance_rate"] is None
    assert nothing["mean_acceptance_length"] is None


def test_answers_add_up() -> None:
    one, other = Speculation(), Speculation()
    one.take([event(make_round(2, (2, 3, 5, 6), 3, 4))])
    other.take([event(make_round(2, (2, 3), 1, 4))])
    one.add(other)
    assert (one.drafts, one.proposed, one.tested, one.accepted, one.accepted_at) == (2, 6, 6, 4, [2, 1, 1])


STATS = [
    GenerationStats(prompt_tokens=10, prompt_tokens_cached=4, completion_tokens=5, prefill_s=0.1, decode_s=0.4),
    GenerationStats(prompt_tokens=10, prompt_tokens_cached=9, completion_tokens=3, prefill_s=0.2, decode_s=0.2),
]


def test_a_prompt_counts_once_for_all_its_answers() -> None:
    assert usage_of(STATS) == {
        "prompt_tokens": 10,
        "completion_tokens": 8,
        "total_tokens": 18,
        "prompt_tokens_details": {"cached_tokens": 4},
    }
    assert usage_of(STATS, prompts=2)["prompt_tokens"] == 20


def test_speeds_leave_out_the_token_that_comes_with_the_prompt() -> None:
    timings = timings_of(STATS[:1])
    assert (timings["prompt_n"], timings["cache_n"], timings["prompt_per_second"]) == (6, 4, 60.0)
    assert (timings["predicted_n"], timings["predicted_ms"], timings["predicted_per_second"]) == (5, 400.0, 10.0)


def test_several_answers_took_as_long_as_the_longest() -> None:
    timings = timings_of(STATS)
    assert (timings["prompt_ms"], timings["predicted_ms"]) == (200.0, 400.0)
    assert timings["predicted_n"] == 8
