"""Where every token of a chunk came from, for clients that show it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from borrador.server.logprobs import TokenNames
from borrador.types import GenerationEvent, Origin, RoundRecord

_MOST_REFUSED = 8


def trace_of(events: Sequence[GenerationEvent], names: TokenNames) -> dict[str, Any]:
    """As `speculative` of a chunk: its tokens, whose texts joined are its content, and the rounds that ended in it."""
    tokens: list[dict[str, Any]] = []
    rounds: list[dict[str, Any]] = []
    first = 0
    for index, event in enumerate(events, start=1):
        if event.record is not None or index == len(events):
            tokens += _tokens_of(events[first:index], event.record)
            first = index
        if event.record is not None:
            rounds.append(_round_of(event.record, names))
    return {"tokens": tokens, "rounds": rounds}


def _tokens_of(events: Sequence[GenerationEvent], record: RoundRecord | None) -> list[dict[str, Any]]:
    accepted = iter(record.verdict.path if record is not None else ())
    confidence = record.draft.confidence if record is not None else ()
    told = []
    for event in events:
        row = next(accepted, None) if event.origin is Origin.DRAFT else None
        told.append(
            {
                "text": event.text,
                "token_id": event.token_ids[0] if event.token_ids else None,
                "origin": event.origin.value,
                "round": event.round,
                "drafter": record.draft.drafter if record is not None and row is not None else None,
                "draft_probability": confidence[row] if row is not None and row < len(confidence) else None,
                "logprob": _logprob(event),
            }
        )
    return told


def _logprob(event: GenerationEvent) -> float | None:
    if event.logprobs is None or math.isinf(event.logprobs.logprob):
        return None
    return event.logprobs.logprob


def _round_of(record: RoundRecord, names: TokenNames) -> dict[str, Any]:
    draft, accepted = record.draft, record.origins.count(Origin.DRAFT)
    kept = set(record.verdict.path[:accepted])
    refused = [token for row, token in enumerate(draft.tokens) if row not in kept][:_MOST_REFUSED]
    return {
        "number": record.number,
        "proposed": len(draft.tokens),
        "accepted": accepted,
        "drafter": draft.drafter,
        "refused": [names.name(token) for token in refused],
        "draft_ms": round(1e3 * record.draft_s, 3),
        "verify_ms": round(1e3 * record.forward_s, 3),
    }
