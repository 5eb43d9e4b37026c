"""Acceptance rules: which draft tokens the target would have written itself. Functions of arrays, without a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from borrador.sampling.noise import Noise
from borrador.sampling.shaping import Distribution
from borrador.types import Float32Array, Verdict

# Row 0 follows the context, row i + 1 follows draft token i.
Choose = Callable[[int], int]


def accept_choices(tokens: Sequence[int], parents: Sequence[int] | None, choose: Choose) -> Verdict:
    """Follow the draft, a chain or a tree, for as long as it holds the target's own choice.

    The answer is what the target alone writes with the same choices, so the rule is exact for greedy decoding, for
    seeded sampling, and for independent draws where no draft token was itself drawn at random.

    Args:
        tokens: γ draft tokens.
        parents: as `Draft.parents`.
        choose: the target's choice, given a row; asked once for each row on the path, so that rows after the first miss
            cost nothing.
    """
    path: list[int] = []
    row = 0
    while True:
        token = choose(row)
        children = _children(row - 1, len(tokens), parents)
        match = next((child for child in children if tokens[child] == token), None)
        if match is None:
            tested = len(path) + (1 if children else 0)
            return Verdict(tuple(path), token, bool(path) and not children, tested)
        path.append(match)
        row = match + 1


def _children(node: int, count: int, parents: Sequence[int] | None) -> Sequence[int]:
    if parents is None:
        return range(node + 1, min(node + 2, count))
    return [child for child in range(node + 1, count) if parents[child] == node]


def accept_by_rejection(
    tokens: Sequence[int], q: Float32Array, p: Callable[[int], Distribution], noise: Noise
) -> Verdict:
    """Speculative sampling (Leviathan et al., arXiv 2211.17192; Chen et al., arXiv 2302.01318) of a chain.

    Draft token x is accepted with probability min(1, p(x) / q(x)). The first one refused is replaced by a draw from the
    residual norm(max(0, p - q)), or from p where rounding leaves nothing of it; after a full acceptance the bonus token
    is drawn from p. The answer then follows the target's distribution exactly.

    Args:
        tokens: γ draft tokens.
        q: γ x vocabulary, the probabilities that each token was drawn with.
        p: the target's shaped distribution, given a row; asked once for each row on the path.
        noise: chance, independent of the draws that made the draft.
    """
    for index, token in enumerate(tokens):
        law = p(index)
        q_token = float(q[index, token])
        if q_token <= 0.0 or not noise.accepts(law.probability(token) / q_token):
            return Verdict(tuple(range(index)), _pick(noise, law, residual(law, q[index])), False, index + 1)
    law = p(len(tokens))
    bonus = _pick(noise, law, law.probabilities)
    return Verdict(tuple(range(len(tokens))), bonus, bool(tokens), len(tokens))


def residual(p: Distribution, q: Float32Array) -> Float32Array:
    """Weights max(0, p - q) over p's ids, not normalised; p itself where they are all 0.

    Args:
        p: the target's distribution.
        q: one probability per token of the vocabulary.
    """
    left = np.maximum(p.probabilities - (q if p.ids is None else q[p.ids]), np.float32(0.0))
    return left if left.any() else p.probabilities


def _pick(noise: Noise, law: Distribution, weights: Float32Array) -> int:
    return law.token(noise.pick(weights))
