from __future__ import annotations

from collections.abc import Iterator

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.server.live import exchange, request
from tests.server.whole import Whole, whole
from tests.server.writing import oracle, writing_llm

from borrador.server.accounts import Speculation
from borrador.server.metrics import Metrics
from borrador.server.telling import Outcome
from borrador.types import GenerationStats

_ANSWER = "Seven tokens"
_CHAT = {"messages": [{"role": "user", "content": "Hello"}]}


@pytest.fixture(scope="module")
def server() -> Iterator[Whole]:
    """A server whose model was asked once, and refused a request once."""
    with whole(writing_llm(_ANSWER, oracle(_ANSWER.encode()))) as running:
        assert running.client.post("/v1/chat/completions", json=_CHAT).status_code == 200
        assert running.client.post("/v1/chat/completions", json={}).status_code == 400
        yield running


def test_an_answer_is_counted_with_what_it_cost(server: Whole) -> None:
    """12 tokens behind a prompt of 13: the prompt's pass gives one, then rounds of 3 accepted and one corrected."""
    seen = server.metrics()
    assert seen['answers_total{reason="stop"}'] == 1
    assert seen["prompt_tokens_total"] == len("user: Hello\n") + 1
    assert seen["prompt_tokens_cached_total"] == 0
    assert seen["generation_tokens_total"] == len(_ANSWER)
    assert seen["time_to_first_token_seconds_count"] == 1
    assert seen["e2e_request_latency_seconds_count"] == 1
    assert seen["inter_token_latency_seconds_count"] == 1
    assert seen["inter_token_latency_seconds_sum"] * (len(_ANSWER) - 1) == pytest.approx(
        seen["e2e_request_latency_seconds_sum"] - seen["time_to_first_token_seconds_sum"]
    )


def test_drafts_are_counted_by_position(server: Whole) -> None:
    seen = server.metrics()
    drafts, accepted = seen["spec_decode_num_drafts_total"], seen["spec_decode_num_accepted_tokens_total"]
    assert drafts == 3
    assert seen["spec_decode_num_draft_tokens_total"] >= accepted == 9
    assert seen["spec_decode_num_tested_tokens_total"] <= seen["spec_decode_num_draft_tokens_total"]
    by_position = [seen[f'spec_decode_num_accepted_tokens_per_pos_total{{position="{place}"}}'] for place in range(3)]
    assert by_position == [3, 3, 3]


def test_refused_requests_are_counted_by_reason(server: Whole) -> None:
    before = server.metrics()
    exchange(server.port, request("/health", host="evil.example"))
    exchange(server.port, request("/health"))
    after = server.metrics()
    assert before['requests_rejected_total{reason="invalid"}'] == 1
    assert after['requests_rejected_total{reason="forbidden"}'] == 1
    assert after['requests_rejected_total{reason="invalid"}'] == 1


def test_the_scheduler_is_shown_as_it_is(server: Whole) -> None:
    seen = server.metrics()
    assert seen["requests_running"] == seen["requests_waiting"] == 0
    assert seen["passes_total"] > 0
    assert seen["rows_total"] >= seen["draft_rows_total"] + seen["prompt_rows_total"] > 0
    assert seen['info{model="tiny",version="' + _version() + '"}'] == 1


def _version() -> str:
    from borrador import __version__

    return __version__


def test_what_is_shown_is_prometheus_text(server: Whole) -> None:
    reply = server.client.get("/metrics")
    assert reply.headers["content-type"].startswith("text/plain; version=")
    names = {family.name for family in text_string_to_metric_families(reply.text)}
    assert names
    assert all(name.startswith("borrador:") for name in names)


def _samples(metrics: Metrics) -> dict[str, float]:
    from prometheus_client import generate_latest

    lines = generate_latest(metrics.registry).decode().splitlines()
    return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in lines if not line.startswith("#")}


def _outcome(reason: str, *, tokens: int, first_s: float | None, total_s: float) -> Outcome:
    stats = GenerationStats(prompt_tokens=5, prompt_tokens_cached=2, completion_tokens=tokens)
    return Outcome(reason=reason, stats=stats, speculation=Speculation(), first_s=first_s, total_s=total_s)


def test_latency_between_tokens_is_that_of_the_answer() -> None:
    metrics = Metrics()
    metrics.count_outcome(_outcome("length", tokens=11, first_s=1.0, total_s=3.0))
    seen = _samples(metrics)
    assert seen["borrador:inter_token_latency_seconds_sum"] == pytest.approx(0.2)
    assert seen["borrador:time_to_first_token_seconds_sum"] == 1.0
    assert seen["borrador:e2e_request_latency_seconds_sum"] == 3.0
    assert seen["borrador:prompt_tokens_cached_total"] == 2


def test_answers_without_an_end_of_their_own_have_no_whole_time() -> None:
    metrics = Metrics()
    metrics.count_outcome(_outcome("cancelled", tokens=1, first_s=1.0, total_s=3.0))
    metrics.count_outcome(_outcome("error", tokens=0, first_s=None, total_s=3.0))
    seen = _samples(metrics)
    assert seen['borrador:answers_total{reason="cancelled"}'] == seen['borrador:answers_total{reason="error"}'] == 1
    assert seen["borrador:e2e_request_latency_seconds_count"] == 0
    assert seen["borrador:inter_token_latency_seconds_count"] == 0
    assert seen["borrador:time_to_first_token_seconds_count"] == 1


@pytest.mark.parametrize(
    ("status", "reason"),
    [(401, "unauthorized"), (403, "forbidden"), (404, "invalid"), (413, "too_large"), (429, "queue_full")],
)
def test_a_status_tells_why_a_request_was_refused(status: int, reason: str) -> None:
    metrics = Metrics()
    metrics.count_status(status)
    for accepted in (0, 200, 204, 500):
        metrics.count_status(accepted)
    seen = _samples(metrics)
    assert seen[f'borrador:requests_rejected_total{{reason="{reason}"}}'] == 1
    assert len([name for name in seen if name.startswith("borrador:requests_rejected_total{")]) == 1
