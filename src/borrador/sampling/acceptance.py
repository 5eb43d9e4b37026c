"""Acceptance rules: which draft tokens the target would have written itself. Functions of arrays, without a model.

Row 0 follows the context and row i + 1 follows draft token i. This holds for the target's distributions p, for its
choices, and for q, the laws that drafts are drawn from (`Draft.q`).

A row may have nothing left to choose, which is a UsageError. It is none behind a draft token that ends the answer, and
which one does is not known here: the last accepted token then stands as the target's own, with nothing behind it. If
the answer goes on, the error comes with the first row of the next round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from borrador.errors import UsageError
from borrador.sampling.noise import Noise
from borrador.sampling.shaping import Distribution
from borrador.types import Float32Array, Int32Array, Verdict

Choose = Callable[[int], int]
LawOfRow = Callable[[int], Distribution]


def accept_choices(tokens: Sequence[int], parents: Sequence[int] | None, choose: Choose) -> Verdict:
    """Follow the draft, a chain or a tree, for as long as it holds the target's own choice.

    The answer is what the target alone writes with the same choices, so the rule is exact for greedy decoding, for
    seeded sampling, and for draws that are independent of the draft.

    Args:
        tokens: γ draft tokens.
        parents: as `Draft.parents`.
        choose: the target's choice, given a row; asked once for each row on the path, so that rows after the first miss
            cost nothing.
    """
    if not tokens:
        return Verdict((), choose(0), False, 0)
    path: list[int] = []
    row = 0
    while True:
        try:
            token = choose(row)
        except UsageError:
            if path:
                return _open_ended(path, tokens)
            raise
        children = _children(row - 1, len(tokens), parents)
        match = next((child for child in children if tokens[child] == token), None)
        if match is None:
            return _verdict(path, token, children)
        path.append(match)
        row = match + 1


def accept_by_rejection(
    tokens: Sequence[int],
    q: Float32Array | None,
    p: LawOfRow,
    noise: Noise,
    *,
    parents: Sequence[int] | None = None,
    lenience: float = 1.0,
) -> Verdict:
    """Speculative sampling (Leviathan et al., arXiv 2211.17192; Chen et al., arXiv 2302.01318) of a chain or a tree.

    Draft token x is accepted with probability min(1, p(x) / q(x)). Where it is refused, norm(max(0, p - q)), the
    residual, takes the place of p, q loses x and is normalised again, and the next sibling is tried (recursive
    rejection without replacement: Jeon et al., arXiv 2402.14160; Chen et al., arXiv 2402.12374). After the last sibling
    the target's own token is drawn from the last residual; after a full acceptance the bonus token is drawn from p. The
    answer follows the target's distribution exactly. Where rounding leaves nothing of a residual, p stays in its place.

    Lenience l below 1 gives this up (appendix A.5 of arXiv 2211.17192): x is accepted with probability
    min(1, p(x) / (l q(x))), all else being equal. No token is then more than 1 / l times as likely as it should be.

    Args:
        tokens: γ draft tokens.
        q: as `Draft.q`; None where each token was certain, which is a point mass of its own for each sibling.
        p: the target's shaped distribution, given a row; asked once for each row on the path.
        noise: chance, independent of the draws that made the draft.
        parents: as `Draft.parents`.
        lenience: l, above 0 and at most 1.
    """
    path: list[int] = []
    row = 0
    while True:
        try:
            law = p(row)
        except UsageError:
            if path:
                return _open_ended(path, tokens)
            raise
        children = _children(row - 1, len(tokens), parents)
        siblings = [tokens[child] for child in children]
        laws_drawn_from = _without_replacement(q[row] if q is not None and children else None, siblings)
        for child, drawn_from in zip(children, laws_drawn_from, strict=False):
            token = tokens[child]
            q_token = 1.0 if drawn_from is None else float(drawn_from[token])
            if q_token > 0.0 and noise.accepts(law.probability(token) / (lenience * q_token)):
                path.append(child)
                break
            law = _without(law, token) if drawn_from is None else residual(law, drawn_from)
        else:
            return _verdict(path, _pick(noise, law), children)
        row = path[-1] + 1


def accept_by_block(tokens: Sequence[int], q: Float32Array, p: LawOfRow, noise: Noise) -> Verdict:
    """Block verification of a chain of drawn tokens (Sun et al., arXiv 2403.10444).

    The answer follows the target's distribution exactly, and no exact rule that sees the rows of one chain keeps more
    tokens on average. At least i tokens are kept with probability r_i = min(1, r_(i-1) p(x_i) / q(x_i)), where r_0 = 1:
    a token that p holds likelier than q makes up for one before it that p holds less likely. After i kept tokens the
    target's own is drawn from the residual norm(max(0, r_i p - q)); after a full acceptance the bonus token from p.

    A draft may end where its tokens so far suggest it, since r_i depends on the first i tokens alone.

    Args:
        tokens: γ draft tokens.
        q: as `Draft.q`.
        p: the target's shaped distribution, given a row; asked once for every row in order, up to the first token that
            it excludes, and for the last row where all tokens are kept.
        noise: chance, independent of the draws that made the draft.
    """
    laws, reach = _reach_of_block(tokens, q, p)
    if noise.accepts(reach[-1]):
        return _whole_block(tokens[: len(laws)], p, noise)
    kept = len(laws) - 1
    while kept > 0 and not noise.accepts(_stopping(laws[kept], q[kept], reach[kept])):
        kept -= 1
    token = _pick(noise, residual(_scaled(laws[kept], reach[kept]), q[kept]))
    return Verdict(tuple(range(kept)), token, False, kept + 1)


def _reach_of_block(tokens: Sequence[int], q: Float32Array, p: LawOfRow) -> tuple[list[Distribution], list[float]]:
    """The target's laws of the rows that tokens are judged by, and r_0, r_1, ... up to the first that is 0."""
    laws: list[Distribution] = []
    reach = [1.0]
    for index, token in enumerate(tokens):
        try:
            laws.append(p(index))
        except UsageError:
            if index == 0:
                raise
            break
        q_token = float(q[index, token])
        ratio = laws[index].probability(token) / q_token if q_token > 0.0 else 0.0
        reach.append(min(1.0, reach[index] * ratio))
        if reach[-1] == 0.0:
            break
    return laws, reach


def _whole_block(tokens: Sequence[int], p: LawOfRow, noise: Noise) -> Verdict:
    """All tokens accepted, with the bonus token behind them."""
    path = tuple(range(len(tokens)))
    try:
        return Verdict(path, _pick(noise, p(len(tokens))), bool(tokens), len(tokens))
    except UsageError:
        if path:
            return _open_ended(path, tokens)
        raise


def residual(p: Distribution, q: Float32Array) -> Distribution:
    """norm(max(0, p - q)); where nothing is left of it, norm(p).

    Args:
        p: weights that may sum to less than 1.
        q: one probability per token of the vocabulary.
    """
    excess = _excess(p, q)
    return _normalised(p.ids, excess if excess.any() else p.probabilities)


def _stopping(p: Distribution, q: Float32Array, reach: float) -> float:
    """The probability of keeping so many tokens of a block, if no more are kept."""
    excess = float(_excess(_scaled(p, reach), q).sum(dtype=np.float64))
    lost = 1.0 - reach
    return excess / (excess + lost) if excess + lost > 0.0 else 1.0


def _excess(p: Distribution, q: Float32Array) -> Float32Array:
    excess: Float32Array = np.maximum(p.probabilities - (q if p.ids is None else q[p.ids]), 0.0)
    return excess


def _without_replacement(q: Float32Array | None, siblings: Sequence[int]) -> Iterator[Float32Array | None]:
    """The law that each sibling was drawn from: q without the siblings before it; None for certain tokens."""
    for token in siblings:
        yield q
        if q is not None:
            q = _without(Distribution(None, q), token).probabilities


def _without(law: Distribution, token: int) -> Distribution:
    """A law as it is where this token is not drawn; the law itself where no other can be."""
    weights = law.probabilities.copy()
    weights[token if law.ids is None else law.ids == token] = 0.0
    return _normalised(law.ids, weights) if weights.any() else law


def _scaled(law: Distribution, factor: float) -> Distribution:
    return Distribution(law.ids, law.probabilities * factor)


def _normalised(ids: Int32Array | None, weights: Float32Array) -> Distribution:
    return Distribution(ids, weights / float(weights.sum(dtype=np.float64)))


def _children(node: int, count: int, parents: Sequence[int] | None) -> Sequence[int]:
    if parents is None:
        return range(node + 1, min(node + 2, count))
    return [child for child in range(node + 1, count) if parents[child] == node]


def _pick(noise: Noise, law: Distribution) -> int:
    return law.token(noise.pick(law.probabilities))


def _open_ended(path: Sequence[int], tokens: Sequence[int]) -> Verdict:
    """Where nothing can be chosen behind the last accepted token."""
    return Verdict(tuple(path[:-1]), tokens[path[-1]], False, len(path))


def _verdict(path: Sequence[int], token: int, children: Sequence[int]) -> Verdict:
    return Verdict(tuple(path), token, bool(path) and not children, len(path) + bool(children))
