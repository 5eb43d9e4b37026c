"""Table 1 of arXiv 2211.17192 by simulation: the product's rejection rule judges drafts that are drawn from q."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from benchmarks.papers.results import Simulated

from borrador.bench.theory import operations_factor, walltime_factor
from borrador.sampling.acceptance import accept_by_rejection
from borrador.sampling.noise import FreshNoise
from borrador.sampling.shaping import Distribution
from borrador.types import Float64Array

_DRAFT_LAW = np.array([0.30, 0.25, 0.20, 0.10, 0.10, 0.05])
_OVERRATED = 3  # of these tokens, the first ones, q thinks more than p does
ROUNDS = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A line of the paper's Table 1, for c = ĉ = 0.

    Attributes:
        operations: the factor by which arithmetic grows.
        speed: the factor by which decoding becomes faster.
    """

    alpha: float
    gamma: int
    operations: float
    speed: float


TABLE_1 = (
    Published(alpha=0.6, gamma=2, operations=1.53, speed=1.96),
    Published(alpha=0.7, gamma=3, operations=1.58, speed=2.53),
    Published(alpha=0.8, gamma=2, operations=1.23, speed=2.44),
    Published(alpha=0.8, gamma=5, operations=1.63, speed=3.69),
    Published(alpha=0.9, gamma=2, operations=1.11, speed=2.71),
    Published(alpha=0.9, gamma=10, operations=1.60, speed=6.86),
)


def by_formula(line: Published) -> tuple[float, float]:
    """Operations and speed as the theorems give them."""
    return operations_factor(line.alpha, line.gamma, 0.0), walltime_factor(line.alpha, line.gamma, 0.0)


def laws(alpha: float, rows: int) -> tuple[Float64Array, Float64Array]:
    """p and q for each row, with sum of min(p, q) = α; any token may come of both. Rows name tokens differently.

    Args:
        alpha: at least 0.25, so that p can take 1 - α from the tokens that q thinks more of.
    """
    moved = np.where(np.arange(len(_DRAFT_LAW)) < _OVERRATED, -_DRAFT_LAW, _DRAFT_LAW)
    moved /= np.where(moved < 0, -moved[moved < 0].sum(), moved[moved > 0].sum())
    p = _DRAFT_LAW + (1.0 - alpha) * moved
    return _rolled(p, rows), _rolled(_DRAFT_LAW, rows)


def _rolled(law: Float64Array, rows: int) -> Float64Array:
    return np.stack([np.roll(law, row) for row in range(rows)])


def simulate(alpha: float, gamma: int, *, rounds: int = ROUNDS, seed: int = 1) -> Simulated:
    """Operations and speed where drafting costs nothing: by tokens and passes of rounds that are really played."""
    generator = np.random.default_rng(seed)
    p, q = laws(alpha, gamma + 1)
    drafts = np.stack([generator.choice(p.shape[1], size=rounds, p=law) for law in q[:gamma]], axis=1)
    rows = [Distribution(None, law.astype(np.float32)) for law in p]
    drawn_from, noise = q.astype(np.float32), FreshNoise(generator)
    verdicts = (accept_by_rejection(draft, drawn_from, rows.__getitem__, noise) for draft in drafts.tolist())
    tokens = sum(len(verdict.path) + 1 for verdict in verdicts)
    return Simulated(alpha=alpha, gamma=gamma, operations=rounds * (gamma + 1) / tokens, speed=tokens / rounds)
