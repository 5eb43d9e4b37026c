"""How fast answers are written, and how fast they would be without drafts: both measured here, at the same load."""

from __future__ import annotations

from dataclasses import dataclass

_HALF_LIFE_S = 30.0  # of writing


@dataclass(slots=True)
class Speed:
    """Tokens per second of the last while: what is older by 30 seconds of writing counts half."""

    tokens: float = 0.0
    seconds: float = 0.0

    def add(self, tokens: int, seconds: float) -> None:
        kept = 0.5 ** (seconds / _HALF_LIFE_S)
        self.tokens = kept * self.tokens + tokens
        self.seconds = kept * self.seconds + seconds

    @property
    def per_second(self) -> float | None:
        """None before anything was measured."""
        return self.tokens / self.seconds if self.seconds else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A step in which answers were written and no prompt was read.

    Attributes:
        requests: that were written.
        tokens: that were written.
        total_s: seconds that it took.
        draft_s: of these, until all drafts were there.
        pass_s: of these, the pass.
        plain_pass_s: T(m), what a pass over the same requests without drafts takes now; None where it is not known.
        drafts: some request has a drafter.
        verifies: some request had a draft.
    """

    requests: int
    tokens: int
    total_s: float
    draft_s: float
    pass_s: float
    plain_pass_s: float | None
    drafts: bool
    verifies: bool


class Speeds:
    """The speeds of a batch, of all its requests together.

    Every step counts in which answers are written and no prompt is read. Where a request in it has a drafter, it counts
    for the speculative speed with the tokens that it wrote and the time that it took, and for the plain speed with one
    token for each request and the time that it would have taken without drafts: without the time that drafting took,
    and with T(m) of the pass without drafts in place of the pass there was. T(m) is what passes of this server were
    seen to take lately; a pass that had no drafts speaks for itself. Steps in which nobody has a drafter are plain as
    they are, and count where no others do.
    """

    def __init__(self) -> None:
        self._speculative, self._without, self._plain = Speed(), Speed(), Speed()

    def observe(self, step: Step) -> None:
        """Learn from a step."""
        if not step.drafts:
            self._plain.add(step.tokens, step.total_s)
            return
        self._speculative.add(step.tokens, step.total_s)
        if step.plain_pass_s is not None:
            plain_pass_s = step.plain_pass_s if step.verifies else step.pass_s
            self._without.add(step.requests, step.total_s - step.draft_s - step.pass_s + plain_pass_s)

    @property
    def speculative(self) -> float | None:
        """Tokens per second with drafts, as it is; None until it was measured."""
        return self._speculative.per_second

    @property
    def plain(self) -> float | None:
        """Tokens per second without drafts; None until it was measured."""
        return self._without.per_second or self._plain.per_second
