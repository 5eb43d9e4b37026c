"""An answer while it is written: where its text goes, and what is said about it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from rich.console import Console

from borrador.cli.output import counted, standard_output
from borrador.cli.trace import Marks, Piece, describe_reason, describe_round
from borrador.types import FinishReason, GenerationEvent, GenerationStats, SamplingParams, TokenLogprobs

Show = Callable[[GenerationEvent], None]


@dataclass(slots=True)
class Answer:
    """What has been written so far."""

    texts: list[str] = field(default_factory=list)
    token_ids: list[int] = field(default_factory=list)
    origins: list[str] = field(default_factory=list)
    logprobs: list[TokenLogprobs] = field(default_factory=list)
    finish_reason: FinishReason = "cancelled"

    @property
    def text(self) -> str:
        return "".join(self.texts)

    def add(self, event: GenerationEvent) -> None:
        self.texts.append(event.text)
        self.token_ids.extend(event.token_ids)
        self.origins.extend([event.origin.value] * len(event.token_ids))
        if event.logprobs is not None:
            self.logprobs.append(event.logprobs)
        if event.finish_reason is not None:
            self.finish_reason = event.finish_reason


def stream_text(event: GenerationEvent) -> None:
    """Write the text as soon as it is certain; a round's tokens become visible together."""
    output = standard_output()
    output.write(event.text)
    if event.record is not None or event.finish_reason is not None:
        output.flush()


def show_rounds(console: Console, piece: Piece, marks: Marks, width: int) -> Show:
    """A view that prints each finished round."""

    def show(event: GenerationEvent) -> None:
        if event.record is not None:
            console.print(describe_round(event.record, piece, marks, width))

    return show


def show_reasons(console: Console) -> Show:
    """A view that prints why each round drafted what it did."""

    def show(event: GenerationEvent) -> None:
        if event.record is not None and event.record.reason is not None:
            console.print(describe_reason(event.record, event.record.reason))

    return show


def describe_stats(stats: GenerationStats) -> str:
    """The footer: one line."""
    tested = stats.draft_tokens_tested
    forced = f", {stats.grammar_tokens} of them from the grammar" if stats.grammar_tokens else ""
    # The first token comes out of the prompt's pass, and forced ones behind it need none: they have no decoding speed.
    speed = f", {stats.tokens_per_second:.1f} tok/s" if stats.tokens_per_second else ""
    return (
        f"{counted(stats.completion_tokens, 'token')}{forced}{speed}, "
        f"{counted(stats.target_passes, 'target pass', 'target passes')}, {stats.tokens_per_pass:.2f} tokens per pass, "
        f"acceptance {f'{stats.acceptance:.0%} of {tested}' if tested else 'none tested'}, "
        f"prompt {counted(stats.prompt_tokens, 'token')} in {stats.prefill_s:.2f} s"
    )


def answer_as_json(
    answer: Answer, stats: GenerationStats, params: SamplingParams, setup: Mapping[str, Any], piece: Piece
) -> dict[str, Any]:
    """The answer with all that is needed to get it again; tokens of log probabilities are spelt by `piece`."""
    reports = {} if params.logprobs is None else {"logprobs": [_as_json(report, piece) for report in answer.logprobs]}
    return {
        "text": answer.text,
        "token_ids": answer.token_ids,
        "origins": answer.origins,
        "finish_reason": answer.finish_reason,
        **reports,
        "seed": params.seed,
        "sampling": asdict(params),
        **setup,
        "stats": {
            **asdict(stats),
            "tokens_per_second": stats.tokens_per_second,
            "tokens_per_pass": stats.tokens_per_pass,
            "acceptance": stats.acceptance,
        },
    }


def _as_json(report: TokenLogprobs, piece: Piece) -> dict[str, Any]:
    def entry(token: int, logprob: float) -> dict[str, Any]:
        # JSON has no infinity: a token that the model excludes has no log probability.
        return {"token_id": token, "token": piece(token), "logprob": logprob if math.isfinite(logprob) else None}

    return {**entry(report.token_id, report.logprob), "top": [entry(token, logprob) for token, logprob in report.top]}
