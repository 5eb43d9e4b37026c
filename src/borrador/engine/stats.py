"""Counts what an answer cost."""

from __future__ import annotations

from borrador.types import GenerationStats, Origin, RoundRecord


class StatsCounter:
    """Adds up rounds. The first round belongs to the prompt, whose last part it evaluates."""

    def __init__(self, prompt_tokens: int) -> None:
        self._prompt_tokens = prompt_tokens
        self._prompt_tokens_cached = 0
        self._completion_tokens = self._target_passes = 0
        self._proposed = self._tested = self._accepted = self._forced = 0
        self._prefill_s = self._decode_s = self._draft_s = self._forward_s = self._sample_s = 0.0

    def add_cached(self, tokens: int) -> None:
        """Count tokens of the prompt that need no evaluation."""
        self._prompt_tokens_cached += tokens

    def add_prefill(self, seconds: float) -> None:
        self._prefill_s += seconds

    def add_round(self, record: RoundRecord) -> None:
        """Count one round. Draft tokens behind the answer's end count neither as tested nor as accepted."""
        tested, accepted = fate_of(record)
        self._completion_tokens += len(record.committed)
        self._target_passes += 1
        self._proposed += len(record.draft.tokens)
        self._tested += tested
        self._accepted += accepted
        self._forced += record.origins.count(Origin.GRAMMAR)
        if record.number == 1:
            self._prefill_s += record.total_s
        else:
            self._decode_s += record.total_s
            self._draft_s += record.draft_s
            self._forward_s += record.forward_s
            self._sample_s += record.sample_s

    def snapshot(self) -> GenerationStats:
        return GenerationStats(
            prompt_tokens=self._prompt_tokens,
            prompt_tokens_cached=self._prompt_tokens_cached,
            completion_tokens=self._completion_tokens,
            target_passes=self._target_passes,
            draft_tokens_proposed=self._proposed,
            draft_tokens_tested=self._tested,
            draft_tokens_accepted=self._accepted,
            grammar_tokens=self._forced,
            prefill_s=self._prefill_s,
            decode_s=self._decode_s,
            draft_s=self._draft_s,
            forward_s=self._forward_s,
            sample_s=self._sample_s,
        )


def fate_of(record: RoundRecord) -> tuple[int, int]:
    """How many tokens of a round's draft were tested and accepted; those behind the answer's end were neither."""
    accepted = record.origins.count(Origin.DRAFT)
    cut = accepted < len(record.verdict.path)
    return accepted if cut else record.verdict.tested, accepted
