from __future__ import annotations

from borrador.bench.prompts import BenchPrompt
from borrador.bench.report import describe_divergence, summarise
from borrador.bench.runner import Pair
from borrador.types import Completion, GenerationStats


def answer(token_ids: tuple[int, ...], decode_s: float, **counts: int) -> Completion:
    stats = GenerationStats(
        prompt_tokens=10, completion_tokens=len(token_ids), prefill_s=0.1, decode_s=decode_s, **counts
    )
    return Completion(text="", token_ids=token_ids, origins=(), finish_reason="stop", stats=stats)


def pair(name: str, task: str, plain: Completion, speculative: Completion) -> Pair:
    return Pair(BenchPrompt(name, task, "?"), plain, speculative)


PAIRS = (
    pair(
        "qa-1",
        "qa",
        answer((1, 2, 3, 4), 0.3),
        answer(
            (1, 2, 3, 4), 0.15, prompt_tokens_cached=9, target_passes=2, draft_tokens_tested=4, draft_tokens_accepted=2
        ),
    ),
    pair(
        "code-1",
        "code",
        answer((5, 6), 0.1, prompt_tokens_cached=2),
        answer((5, 6), 0.1, prompt_tokens_cached=9, target_passes=1, draft_tokens_tested=1, draft_tokens_accepted=1),
    ),
)


def test_report_divides_all_tokens_by_all_decoding_time() -> None:
    assert summarise(PAIRS).as_json() == {
        "plain_tok_s": 10.0,
        "spec_tok_s": 16.0,
        "speedup": 1.6,
        "tokens_per_pass": 2.0,
        "acceptance": 0.6,
        "prefill_tok_s": 90.0,
        "prompts": 2,
        "identical": 2,
        "per_task": {
            "qa": {"plain_tok_s": 10.0, "spec_tok_s": 20.0, "speedup": 2.0},
            "code": {"plain_tok_s": 10.0, "spec_tok_s": 10.0, "speedup": 1.0},
        },
    }


def test_identical_counts_only_equal_token_ids() -> None:
    changed = pair("qa-2", "qa", answer((1, 2), 0.1), answer((1, 9), 0.1))
    report = summarise((*PAIRS, changed))
    assert (report.prompts, report.identical) == (3, 2)
    assert describe_divergence((*PAIRS, changed)) == (
        "speculative decoding must not change an answer, but prompt qa-2 differs at token 1: plain 2, speculative 9"
    )


def test_nothing_to_describe_where_all_answers_are_identical() -> None:
    assert describe_divergence(PAIRS) is None


def test_answers_without_decoding_time_give_zero_and_no_crash() -> None:
    report = summarise((pair("qa-1", "qa", answer((), 0.0), answer((), 0.0)),))
    assert report.total.speedup == 0.0


def test_where_no_draft_token_was_tested_there_is_no_acceptance() -> None:
    untested = summarise((pair("qa-1", "qa", answer((1, 2), 0.1), answer((1, 2), 0.1)),))
    assert untested.acceptance is None
    assert untested.as_json()["acceptance"] is None
    refused = summarise((pair("qa-1", "qa", answer((1, 2), 0.1), answer((1, 2), 0.1, draft_tokens_tested=3)),))
    assert refused.acceptance == 0.0
