"""How much a verification checks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """How much is checked.

    Attributes:
        prompts: the most prompts that are answered.
        max_tokens: of an answer.
        draft_lengths: that every drafter is tried with, beside the lengths that pay.
        ways: in which each answer is drafted.
        answers_on_other_threads: answers of each kind that are written again with each other number of threads.
        texts: whose logits are compared.
        text_tokens: the most tokens of a text.
        tail: positions of a text that are compared.
        places: texts behind which answers are drawn without a seed.
        draws: answers drawn in each way.
    """

    prompts: int
    max_tokens: int
    draft_lengths: Sequence[int]
    ways: int
    answers_on_other_threads: int
    texts: int
    text_tokens: int
    tail: int
    places: int
    draws: int


QUICK = Extent(
    prompts=3,
    max_tokens=24,
    draft_lengths=(3, 8),
    ways=1,
    answers_on_other_threads=2,
    texts=1,
    text_tokens=64,
    tail=20,
    places=1,
    draws=20_000,
)
FULL = Extent(
    prompts=24,
    max_tokens=64,
    draft_lengths=(1, 2, 4, 8, 15),
    ways=3,
    answers_on_other_threads=6,
    texts=4,
    text_tokens=256,
    tail=48,
    places=3,
    draws=20_000,
)
