"""What Prometheus can ask: answers and what they cost as they end, and the scheduler's own numbers as they are.

Names are those that vLLM's and llama.cpp's servers share, under this program's prefix. Definitions: acceptance is
accepted / tested tokens. A mean acceptance length counts the bonus token: 1 + accepted / drafts. An answer has one
inter-token latency, (its whole time - time to first token) / (tokens - 1): chunks of a stream may hold several tokens,
so the gaps between them say nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from borrador import __version__
from borrador.engine.snapshot import Snapshot
from borrador.server.telling import Outcome

PREFIX = "borrador:"

_REASONS = {
    401: "unauthorized",
    403: "forbidden",
    408: "too_slow",
    413: "too_large",
    415: "encoded",
    429: "queue_full",
    503: "unavailable",
}
_LATENCY_S = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)
_TOKEN_S = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.03, 0.04, 0.06, 0.08, 0.1, 0.15, 0.25, 0.5, 1.0, 2.5)
_COUNTERS = {
    "passes": "Passes of the target.",
    "rows": "Rows evaluated in these passes: rows / passes is how many share one.",
    "prompt_rows": "Of these, rows of prompts that did not yet lead to a token.",
    "draft_rows": "Of these, rows of drafted tokens: draft_rows / rows is the share of drafting.",
    "preemptions": "Answers that had to make room for older ones, and went on later.",
}


class Metrics:
    """Counts, and shows what it has counted.

    Attributes:
        registry: holds all there is to show.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._snapshot: Callable[[], Snapshot] | None = None
        self._model = ""
        self.registry.register(_Live(self))
        self._answers = self._counter("answers", "Answers that ended, by finish reason, cancelled or error.", "reason")
        self._rejected = self._counter("requests_rejected", "Requests refused, by what was wrong.", "reason")
        self._prompt = self._counter("prompt_tokens", "Tokens of prompts.")
        self._cached = self._counter("prompt_tokens_cached", "Of these, tokens that the cache held already.")
        self._written = self._counter("generation_tokens", "Tokens of answers.")
        self._drafts = self._counter("spec_decode_num_drafts", "Rounds that verified a draft.")
        self._proposed = self._counter("spec_decode_num_draft_tokens", "Tokens in drafts.")
        self._tested = self._counter("spec_decode_num_tested_tokens", "Of these, compared with the target's choice.")
        self._accepted = self._counter("spec_decode_num_accepted_tokens", "Of these, accepted.")
        self._accepted_at = self._counter(
            "spec_decode_num_accepted_tokens_per_pos", "Accepted tokens by position in their draft, from 0.", "position"
        )
        self._first_s = self._histogram("time_to_first_token_seconds", "From admission to the first token.", _LATENCY_S)
        self._token_s = self._histogram(
            "inter_token_latency_seconds", "Per answer: (time - time to first token) / (tokens - 1).", _TOKEN_S
        )
        self._total_s = self._histogram("e2e_request_latency_seconds", "From admission to the end.", _LATENCY_S)

    def routes(self) -> list[Route]:
        """Of `/metrics`."""
        return [Route("/metrics", self._show)]

    def open(self, model: str, snapshot: Callable[[], Snapshot]) -> None:
        """Begin to show what a scheduler does, and for which model."""
        self._model, self._snapshot = model, snapshot

    def count_status(self, status: int) -> None:
        """Count a response; those that refuse a request are told apart by why."""
        if status in _REASONS or 400 <= status < 500:
            self._rejected.labels(_REASONS.get(status, "invalid")).inc()

    def count_outcome(self, outcome: Outcome) -> None:
        """Count an answer that ended."""
        stats, speculation = outcome.stats, outcome.speculation
        self._answers.labels(outcome.reason).inc()
        self._prompt.inc(stats.prompt_tokens)
        self._cached.inc(stats.prompt_tokens_cached)
        self._written.inc(stats.completion_tokens)
        self._drafts.inc(speculation.drafts)
        self._proposed.inc(speculation.proposed)
        self._tested.inc(speculation.tested)
        self._accepted.inc(speculation.accepted)
        for position, count in enumerate(speculation.accepted_at):
            self._accepted_at.labels(position).inc(count)
        self._observe_times(outcome)

    def _observe_times(self, outcome: Outcome) -> None:
        if outcome.first_s is None:
            return
        self._first_s.observe(outcome.first_s)
        tokens = outcome.stats.completion_tokens
        if tokens > 1:
            self._token_s.observe((outcome.total_s - outcome.first_s) / (tokens - 1))
        if outcome.reason not in ("cancelled", "error"):
            self._total_s.observe(outcome.total_s)

    def _counter(self, name: str, help_text: str, *labels: str) -> Counter:
        return Counter(PREFIX + name, help_text, labels, registry=self.registry)

    def _histogram(self, name: str, help_text: str, bounds: tuple[float, ...]) -> Histogram:
        return Histogram(PREFIX + name, help_text, registry=self.registry, buckets=bounds)

    async def _show(self, _: Request) -> Response:
        return Response(generate_latest(self.registry), headers={"content-type": CONTENT_TYPE_LATEST})

    def live(self) -> Iterator[Metric]:
        """What is read when it is asked for, of the scheduler at this moment."""
        info = GaugeMetricFamily(PREFIX + "info", "The program and its model.", labels=("version", "model"))
        info.add_metric((__version__, self._model), 1.0)
        yield info
        if self._snapshot is None:
            return
        now = self._snapshot()
        yield _gauge("requests_running", "Answers that are written.", now.running)
        yield _gauge("requests_waiting", "Answers that wait for their turn.", now.waiting)
        for name, help_text in _COUNTERS.items():
            yield CounterMetricFamily(PREFIX + name, help_text, getattr(now, name))
        yield from _cache(now.cache_bytes_used, now.cache_bytes_limit)
        yield from _speeds(now.tokens_per_second_speculative, now.tokens_per_second_plain)


class _Live(Collector):
    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[Metric]:
        return self._metrics.live()

    def describe(self) -> Iterator[Metric]:
        return iter(())


def _cache(used: int, limit: int | None) -> Iterator[Metric]:
    yield _gauge("kv_cache_used_bytes", "Memory that keys and values take, of idle ones too.", used)
    yield _gauge("kv_cache_limit_bytes", "The most they may take; NaN where there is no limit.", limit)
    yield _gauge("kv_cache_usage_ratio", "The one over the other.", used / limit if limit else None)


def _speeds(speculative: float | None, plain: float | None) -> Iterator[Metric]:
    unknown = "; NaN until it was measured."
    yield _gauge("tokens_per_second_speculative", f"Of all answers, as they are written{unknown}", speculative)
    yield _gauge("tokens_per_second_plain", f"What that would be without drafts{unknown}", plain)
    speedup = speculative / plain if speculative is not None and plain else None
    yield _gauge("speedup_ratio", f"The one over the other{unknown}", speedup)


def _gauge(name: str, help_text: str, value: float | None) -> GaugeMetricFamily:
    return GaugeMetricFamily(PREFIX + name, help_text, math.nan if value is None else value)
