"""What acceptance rules can expect of the distributions p and q of target and draft model: functions of arrays.

What the papers on rejection expect is in `borrador.bench.theory`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from borrador.types import Float64Array


def agreement(p: Float64Array, q: Float64Array) -> float:
    """How often draws from p and q with the same Gumbel noise are one token.

    Both races are won by x where no y arrives before it in either, with probability
    1 / sum over y of max(p(y) / p(x), q(y) / q(x)). Sorted by p / q, the first of the two is the larger one from x on.
    """
    both = (p > 0.0) & (q > 0.0)
    order = np.argsort(p[both] / q[both])
    p_sorted, q_sorted = p[both][order], q[both][order]
    only_p, only_q = p[~both].sum(), q[~both].sum()
    p_from = np.cumsum(p_sorted[::-1])[::-1] + only_p
    q_before = np.cumsum(q_sorted) - q_sorted + only_q
    return float((1.0 / (p_from / p_sorted + q_before / q_sorted)).sum())


def coincidence(p: Float64Array, q: Float64Array) -> float:
    """sum of p q: how often independent draws are one token, which is what judging q's token as certain accepts."""
    return float((p * q).sum())


def rejection_reach(ratios: Sequence[float]) -> list[float]:
    """By token of a chain, the probability that rejection accepts it, from p(x) / q(x) of all tokens up to it."""
    reach, result = 1.0, []
    for ratio in ratios:
        reach *= min(1.0, ratio)
        result.append(reach)
    return result


def block_reach(ratios: Sequence[float]) -> list[float]:
    """By token of a chain, the probability that block verification keeps it."""
    reach, result = 1.0, []
    for ratio in ratios:
        reach = min(1.0, reach * ratio)
        result.append(reach)
    return result
