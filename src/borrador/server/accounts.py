"""What an answer cost, in the words of OpenAI's, llama.cpp's and vLLM's servers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from borrador.engine.stats import fate_of
from borrador.types import GenerationEvent, GenerationStats


class Speculation:
    """Adds up the drafts of answers.

    Attributes:
        drafts: rounds that verified a draft.
        proposed: tokens in them.
        tested: tokens that were compared with the target's choice.
        accepted: tokens that became part of an answer.
        accepted_at: of these, how many at each position in their draft.
    """

    def __init__(self) -> None:
        self.drafts = self.proposed = self.tested = self.accepted = 0
        self.accepted_at: list[int] = []

    def take(self, events: Iterable[GenerationEvent]) -> None:
        """Count the rounds that these events end."""
        for event in events:
            if event.record is not None and event.record.draft.tokens:
                tested, accepted = fate_of(event.record)
                self._add(1, len(event.record.draft.tokens), tested, accepted, (1,) * accepted)

    def add(self, other: Speculation) -> None:
        """Count those of another answer too."""
        self._add(other.drafts, other.proposed, other.tested, other.accepted, other.accepted_at)

    def as_json(self) -> dict[str, Any]:
        """As `metrics.speculative_decoding`. Acceptance is accepted / tested; a length counts the bonus token."""
        return {
            "num_drafts": self.drafts,
            "num_draft_tokens": self.proposed,
            "num_draft_tokens_tested": self.tested,
            "num_accepted_tokens": self.accepted,
            "num_accepted_tokens_per_pos": self.accepted_at,
            "draft_acceptance_rate": self.accepted / self.tested if self.tested else None,
            "mean_acceptance_length": 1 + self.accepted / self.drafts if self.drafts else None,
        }

    def _add(self, drafts: int, proposed: int, tested: int, accepted: int, accepted_at: Sequence[int]) -> None:
        self.drafts += drafts
        self.proposed += proposed
        self.tested += tested
        self.accepted += accepted
        self.accepted_at += [0] * (len(accepted_at) - len(self.accepted_at))
        for position, count in enumerate(accepted_at):
            self.accepted_at[position] += count


def usage_of(answers: Sequence[GenerationStats], prompts: int = 1) -> dict[str, Any]:
    """As `usage`: every prompt counts once, though several answers begin with it.

    Args:
        answers: of all choices, those to a prompt one after another.
        prompts: how many there are.
    """
    first_ones = answers[:: len(answers) // prompts]
    prompt = sum(stats.prompt_tokens for stats in first_ones)
    completion = sum(stats.completion_tokens for stats in answers)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": sum(stats.prompt_tokens_cached for stats in first_ones)},
    }


def timings_of(answers: Sequence[GenerationStats]) -> dict[str, Any]:
    """As `timings`: what was evaluated and written, in the time of the answer that took longest."""
    evaluated = sum(stats.prompt_tokens - stats.prompt_tokens_cached for stats in answers)
    written = sum(stats.completion_tokens for stats in answers)
    prefill_ms = 1e3 * max(stats.prefill_s for stats in answers)
    decode_ms = 1e3 * max(stats.decode_s for stats in answers)
    decoded = sum(max(stats.completion_tokens - 1, 0) for stats in answers)  # the first ones come with the prompt
    return {
        "cache_n": sum(stats.prompt_tokens_cached for stats in answers),
        "prompt_n": evaluated,
        "prompt_ms": round(prefill_ms, 3),
        "prompt_per_second": _rate(evaluated, prefill_ms),
        "predicted_n": written,
        "predicted_ms": round(decode_ms, 3),
        "predicted_per_second": _rate(decoded, decode_ms),
        "draft_n": sum(stats.draft_tokens_tested for stats in answers),
        "draft_n_accepted": sum(stats.draft_tokens_accepted for stats in answers),
    }


def _rate(count: int, milliseconds: float) -> float:
    return round(1e3 * count / milliseconds, 2) if milliseconds else 0.0
