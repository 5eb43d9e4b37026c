"""Answers of a benchmark as they were measured, in the form in which they are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple

from msgspec import Meta

from borrador.engine.stats import fate_of
from borrador.types import Completion, FinishReason, RoundRecord

Count = Annotated[int, Meta(ge=0)]
Seconds = Annotated[float, Meta(ge=0.0)]
Names = Callable[[str], Sequence[str]]


def _apart(drafter: str) -> list[str]:
    return drafter.split("+")


class RoundFigures(NamedTuple):
    """One round: tokens committed, rows evaluated by its pass, and seconds. What is left of `total_s` is other work."""

    tokens: Count
    rows: Count
    draft_s: Seconds
    forward_s: Seconds
    sample_s: Seconds
    total_s: Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class DrafterFigures:
    """Acceptance by position. `acceptance(i)` is accepted[i] / tested[i], where 0 is a draft's first token.

    Attributes:
        drafter: who drafted; sorted names joined by `+` where drafts were put together.
        rounds: that verified a draft of theirs.
        proposed: tokens in those drafts.
        tested: of each position, in how many rounds it was compared with the target's choice; positions of a tree are
            depths.
        accepted: of each position, in how many rounds its token was accepted.
    """

    drafter: str
    rounds: Count
    proposed: Count
    tested: tuple[Count, ...]
    accepted: tuple[Count, ...]

    def acceptance(self, position: int) -> float:
        return self.accepted[position] / self.tested[position]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One answer. Seconds of `draft_s`, `forward_s` and `sample_s` are parts of `decode_s`.

    Attributes:
        text: of the answer.
        token_ids: of the answer.
        tokens: committed ones; the first came out of the prompt's own pass.
        prompt_tokens_cached: of the prompt's, those that needed no evaluation.
        passes: of the target, with the prompt's last.
        prefill_s: until the first token was there.
        decode_s: from there on.
        sample_s: choosing tokens: sampling and the acceptance rule. Where the likeliest token is taken, the pass itself
            finds it, and that is part of `forward_s`.
        drafters: acceptance by position of each that drafted.
        rounds: of decoding; the prompt's own is not among them.
    """

    text: str
    token_ids: tuple[Count, ...]
    finish_reason: FinishReason
    tokens: Count
    prompt_tokens: Count
    prompt_tokens_cached: Count
    passes: Count
    prefill_s: Seconds
    decode_s: Seconds
    draft_s: Seconds
    forward_s: Seconds
    sample_s: Seconds
    drafters: tuple[DrafterFigures, ...]
    rounds: tuple[RoundFigures, ...]

    @property
    def tokens_decoded(self) -> int:
        """Tokens that took `decode_s`."""
        return max(self.tokens - 1, 0)

    @property
    def total_s(self) -> float:
        """End to end: prefill and decoding."""
        return self.prefill_s + self.decode_s

    @property
    def decode_tok_s(self) -> float | None:
        """None where nothing was decoded."""
        return self.tokens_decoded / self.decode_s if self.tokens_decoded and self.decode_s else None

    @property
    def total_tok_s(self) -> float | None:
        """None where nothing was written."""
        return self.tokens / self.total_s if self.tokens and self.total_s else None

    @classmethod
    def of(cls, answer: Completion, records: Sequence[RoundRecord], names: Names = _apart) -> Run:
        """An answer and all its rounds, from the prompt's own on; `names` as for `drafters_of`."""
        stats, decoding = answer.stats, [record for record in records if record.number > 1]
        return cls(
            text=answer.text,
            token_ids=answer.token_ids,
            finish_reason=answer.finish_reason,
            tokens=stats.completion_tokens,
            prompt_tokens=stats.prompt_tokens,
            prompt_tokens_cached=stats.prompt_tokens_cached,
            passes=stats.target_passes,
            prefill_s=stats.prefill_s,
            decode_s=stats.decode_s,
            draft_s=stats.draft_s,
            forward_s=stats.forward_s,
            sample_s=stats.sample_s,
            drafters=drafters_of(decoding, names),
            rounds=tuple(map(_figures, decoding)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Both answers to a prompt, written in turns of a round each.

    Attributes:
        prompt: its id.
        repeat: how often the prompt had been answered before in this benchmark.
        plain_first: which of the two began.
    """

    prompt: str
    task: str
    repeat: Count
    plain_first: bool
    plain: Run
    speculative: Run

    @property
    def identical(self) -> bool:
        return self.plain.token_ids == self.speculative.token_ids

    @property
    def first_divergence(self) -> int | None:
        """Index of the first token that differs (the length of the shorter answer where one ends early)."""
        if self.identical:
            return None
        both = zip(self.plain.token_ids, self.speculative.token_ids, strict=False)
        shorter = min(len(self.plain.token_ids), len(self.speculative.token_ids))
        return next((index for index, (left, right) in enumerate(both) if left != right), shorter)


def drafters_of(records: Iterable[RoundRecord], names: Names = _apart) -> tuple[DrafterFigures, ...]:
    """Acceptance by position of everyone whose drafts these rounds verified, in the order of their first one.

    Args:
        records: of the rounds.
        names: what to call those who put a draft together, by its drafter. They count as one, whoever came first.
    """
    by_drafter: dict[str, list[RoundRecord]] = {}
    for record in records:
        if record.draft.tokens:
            joined = "+".join(sorted(names(record.draft.drafter)))
            by_drafter.setdefault(joined, []).append(record)
    return tuple(_drafter_figures(joined, verified) for joined, verified in by_drafter.items())


def count_by_position(records: Iterable[RoundRecord]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """In how many rounds the draft's token at each place was tested, and in how many accepted; 0 is its first token."""
    depths = [_depths(record) for record in records]
    tested = _columns([1] * reached for reached, _ in depths)
    accepted = _columns([1] * accepted + [0] * (reached - accepted) for reached, accepted in depths)
    return tested, accepted


def together(figures: Iterable[DrafterFigures]) -> tuple[DrafterFigures, ...]:
    """The figures of several answers added up, by drafter."""
    by_drafter: dict[str, list[DrafterFigures]] = {}
    for each in figures:
        by_drafter.setdefault(each.drafter, []).append(each)
    return tuple(
        DrafterFigures(
            drafter=name,
            rounds=sum(each.rounds for each in members),
            proposed=sum(each.proposed for each in members),
            tested=_columns(each.tested for each in members),
            accepted=_columns(each.accepted for each in members),
        )
        for name, members in by_drafter.items()
    )


def _drafter_figures(name: str, verified: Sequence[RoundRecord]) -> DrafterFigures:
    tested, accepted = count_by_position(verified)
    return DrafterFigures(
        drafter=name,
        rounds=len(verified),
        proposed=sum(len(record.draft.tokens) for record in verified),
        tested=tested,
        accepted=accepted,
    )


def _depths(record: RoundRecord) -> tuple[int, int]:
    """How many positions of the draft were tested and accepted. Those behind the answer's end were neither."""
    tested, accepted = fate_of(record)
    return accepted + (tested > accepted), accepted


def _columns(counts: Iterable[Sequence[int]]) -> tuple[int, ...]:
    """Sums by position; what is short counts as nothing at the end."""
    sums: list[int] = []
    for each in counts:
        sums += [0] * (len(each) - len(sums))
        for position, count in enumerate(each):
            sums[position] += count
    return tuple(sums)


def _figures(record: RoundRecord) -> RoundFigures:
    rows = record.pending + len(record.draft.tokens)
    return RoundFigures(len(record.committed), rows, record.draft_s, record.forward_s, record.sample_s, record.total_s)
