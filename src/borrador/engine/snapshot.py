"""What a scheduler did since it started, in numbers."""

from __future__ import annotations

from dataclasses import dataclass, fields

from borrador.engine.progress import Progress
from borrador.engine.stats import fate_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A scheduler at one moment.

    Every request is in one place: admitted = finished + cancelled + failed + running + waiting. Every drafted token met
    one fate: drafted = accepted + rejected + ignored.

    Attributes:
        running: requests that are written.
        waiting: requests that wait for their turn.
        reserved: seats that are taken, by these or by requests that are still prepared.
        seats: the most that can be taken.
        requests_admitted: since the start, like all numbers below.
        requests_finished: whose answers came to an end, the timed out ones among them.
        requests_timed_out: whose time was over.
        requests_cancelled: that were cancelled.
        requests_failed: that met an error.
        completion_tokens: written, for all requests.
        passes: of the target.
        rows: evaluated in them.
        prompt_rows: of these, pieces of prompts that did not yet lead to a token.
        draft_rows: of these, tokens of drafts.
        preemptions: requests that had to make room for older ones, and went on later.
        draft_tokens_proposed: in the drafts that were verified.
        draft_tokens_accepted: of these, part of an answer.
        draft_tokens_rejected: of these, refused by the target.
        draft_tokens_ignored: of these, behind a refused token or the end of an answer.
        cache_bytes_used: memory that keys and values take, of idle sequences too; what several share counts once.
        cache_bytes_limit: the most they may take; None where there is no limit.
        tokens_per_second_speculative: of all requests together in the last while, as they are written where there are
            drafters, see `borrador.engine.speeds`; None until it was measured.
        tokens_per_second_plain: what that would be without drafts.
        is_healthy: requests can be written.
    """

    running: int
    waiting: int
    reserved: int
    seats: int
    requests_admitted: int
    requests_finished: int
    requests_timed_out: int
    requests_cancelled: int
    requests_failed: int
    completion_tokens: int
    passes: int
    rows: int
    prompt_rows: int
    draft_rows: int
    preemptions: int
    draft_tokens_proposed: int
    draft_tokens_accepted: int
    draft_tokens_rejected: int
    draft_tokens_ignored: int
    cache_bytes_used: int
    cache_bytes_limit: int | None
    tokens_per_second_speculative: float | None
    tokens_per_second_plain: float | None
    is_healthy: bool


@dataclass(slots=True)
class Tally:
    """The numbers that a snapshot has of requests; attributes as there."""

    requests_admitted: int = 0
    requests_finished: int = 0
    requests_timed_out: int = 0
    requests_cancelled: int = 0
    requests_failed: int = 0
    completion_tokens: int = 0
    draft_tokens_proposed: int = 0
    draft_tokens_accepted: int = 0
    draft_tokens_rejected: int = 0
    draft_tokens_ignored: int = 0

    def count(self, progress: Progress) -> bool:
        """Add what a step brought for a request; whether it has ended."""
        for event in progress.events:
            self.completion_tokens += len(event.token_ids)
            if event.record is not None:
                proposed, (tested, accepted) = len(event.record.draft.tokens), fate_of(event.record)
                self.draft_tokens_proposed += proposed
                self.draft_tokens_accepted += accepted
                self.draft_tokens_rejected += tested - accepted
                self.draft_tokens_ignored += proposed - tested
        if progress.error is not None:
            self.requests_failed += 1
            return True
        reason = progress.events[-1].finish_reason if progress.events else None
        self.requests_finished += reason is not None
        self.requests_timed_out += reason == "timeout"
        return reason is not None

    def as_dict(self) -> dict[str, int]:
        return {each.name: getattr(self, each.name) for each in fields(self)}
