"""What the papers on speculative decoding predict. Functions of numbers, without a model.

Leviathan et al., arXiv 2211.17192: acceptance rate, expected tokens, walltime and operations factor, best draft length.
Chen et al., arXiv 2302.01318: what a loop takes. α is the probability that a draft token is accepted if those before it
are, the same for all; γ is the draft length; c what drafting a token takes, as a share of a plain pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from borrador.types import Float64Array


def overlap(p: Float64Array, q: Float64Array) -> float:
    """sum of min(p, q): how often a token drawn from q is accepted by rejection (corollary 3.6 of arXiv 2211.17192).

    Args:
        p: of the target, one probability per token.
        q: of the draft, likewise.
    """
    return float(np.minimum(p, q).sum())


def expected_tokens(alpha: float, gamma: int) -> float:
    """Tokens of a round, the target's own one among them: (1 - α^(γ+1)) / (1 - α), equation 1 of arXiv 2211.17192."""
    return sum(math.pow(alpha, accepted) for accepted in range(gamma + 1))


def expected_tokens_by_position(acceptance: Sequence[float]) -> float:
    """The same where each place of a draft has a rate of its own: 1 + a_1 + a_1 a_2 + ... + a_1 ... a_γ.

    Args:
        acceptance: γ shares of the tokens tested at a place that were accepted.
    """
    return 1.0 + float(np.cumprod(acceptance).sum())


def walltime_factor(alpha: float, gamma: int, c: float, *, pass_ratio: float = 1.0) -> float:
    """How much faster than plain decoding: (1 - α^(γ+1)) / ((1 - α) (γ c + 1)), theorem 3.8 of arXiv 2211.17192.

    Args:
        alpha: from 0 to 1.
        gamma: draft length.
        c: what drafting a token takes / T(1).
        pass_ratio: T(γ + 1) / T(1). The theorem takes it for 1.
    """
    return expected_tokens(alpha, gamma) / (pass_ratio + gamma * c)


def operations_factor(alpha: float, gamma: int, c: float) -> float:
    """How many times the arithmetic of plain decoding: (1 - α) (γ ĉ + γ + 1) / (1 - α^(γ+1)), theorem 3.11 of
    arXiv 2211.17192.

    Args:
        alpha: from 0 to 1.
        gamma: draft length.
        c: ĉ, operations for a token by the draft model / by the target.
    """
    return (gamma * c + gamma + 1) / expected_tokens(alpha, gamma)


def best_gamma(factor: Callable[[int], float], most: int) -> int:
    """The draft length from 0 to `most` with the largest factor; the shortest of several."""
    return max(range(most + 1), key=factor)


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """A round on average: K tokens drafted, one pass, a verdict (arXiv 2302.01318, section 6 and figure 1).

    Attributes:
        tokens: committed.
        draft_s: seconds of drafting.
        pass_s: seconds of the target's pass.
        beside_s: seconds of everything else, such as judging the draft.
    """

    tokens: float
    draft_s: float
    pass_s: float
    beside_s: float

    @property
    def seconds(self) -> float:
        return self.draft_s + self.pass_s + self.beside_s

    @property
    def token_s(self) -> float:
        """Seconds for a token."""
        return self.seconds / self.tokens

    def speedup(self, plain: Loop) -> float:
        """How much faster than plain decoding, whose loop writes one token."""
        return plain.token_s / self.token_s
