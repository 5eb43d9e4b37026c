"""One pass for one sequence or for several, each of which may want something else of it."""

from __future__ import annotations

from collections.abc import Sequence

from borrador import _native
from borrador.models.target import Batch, BestTokens, Model, Rows, Target, Wanted
from borrador.types import Float32Array

# What a pass gave of the rows of one sequence.
Evidence = Float32Array | BestTokens


def evaluate(target: Target, rows: Rows, wanted: Wanted, *, within: int | None = None) -> Evidence:
    """A pass over one sequence; of tokens below `within` alone, where that is given."""
    if wanted.best:
        return target.best(rows, wanted.best, within=within, normalised=wanted.normalised)
    return target.forward(rows)[:, :within]


def evaluate_batch(
    model: Model, batch: Batch, wanted: Sequence[Wanted], *, within: int | None = None
) -> Sequence[Evidence]:
    """A pass over several sequences of a model; for each what `evaluate` gives, bit by bit.

    Logits are written out for all sequences where one of them needs them: the best tokens are looked up in them for the
    others, which costs little beside the head, and the head's weights are read once.
    """
    if len(batch) == 1:
        return [evaluate(*batch[0], wanted[0], within=within)]
    asking = [want for (_, rows), want in zip(batch, wanted, strict=True) if rows.logits_from < len(rows.tokens)]
    if all(want.best for want in asking):
        normalised = any(want.normalised for want in asking)
        count = max((want.best for want in asking), default=1)
        found = model.best(batch, count, within=within, normalised=normalised)
        return [best.first(want.best, normalised=want.normalised) for best, want in zip(found, wanted, strict=True)]
    logits = [rows[:, :within] for rows in model.forward(batch)]
    return [best_of(rows, want) if want.best else rows for rows, want in zip(logits, wanted, strict=True)]


def best_of(logits: Float32Array, wanted: Wanted) -> BestTokens:
    """The most likely tokens of these rows of logits, as a pass that was asked for them gives them, bit by bit."""
    return BestTokens(*_native.best_of_logits(logits, count=wanted.best, normaliser=wanted.normalised))
