"""Values that the two papers print."""

from __future__ import annotations

from typing import NamedTuple


class Translation(NamedTuple):
    """A line of Table 2 of arXiv 2211.17192: English to German by T5-XXL (11B), batch 1, one TPU-v4."""

    draft: str
    temperature: float
    gamma: int
    alpha: float
    speed: float


class Overlap(NamedTuple):
    """A line of Table 3 of arXiv 2211.17192: α of a draft at temperatures 0 and 1."""

    target: str
    draft: str
    greedy: float
    sampled: float


class Sampling(NamedTuple):
    """A line of Table 1 of arXiv 2302.01318: Chinchilla 70B with a 4B draft model, K = 4."""

    task: str
    token_ms: float
    speed: float


TABLE_2 = (
    Translation("77M", 0.0, 7, 0.75, 3.4),
    Translation("250M", 0.0, 7, 0.80, 2.8),
    Translation("800M", 0.0, 7, 0.82, 1.7),
    Translation("77M", 1.0, 7, 0.62, 2.6),
    Translation("250M", 1.0, 5, 0.68, 2.4),
    Translation("800M", 1.0, 3, 0.71, 1.4),
)
TABLE_3 = (
    Overlap("GPT-like 97M", "unigram", 0.03, 0.03),
    Overlap("GPT-like 97M", "bigram", 0.05, 0.05),
    Overlap("GPT-like 97M", "6M model", 0.88, 0.89),
    Overlap("T5-XXL, English to German", "bigram", 0.20, 0.19),
)
CHINCHILLA = (
    Sampling("XSum, nucleus 0.8", 7.52, 1.92),
    Sampling("XSum, greedy", 7.00, 2.01),
    Sampling("HumanEval, nucleus 0.95, T = 0.8", 5.73, 2.46),
)
CHINCHILLA_TOKEN_MS, CHINCHILLA_DRAFT_MS, CHINCHILLA_DRAFTED = 14.1, 1.8, 4
