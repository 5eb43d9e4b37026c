"""What the model itself thought of the tokens of an answer."""

from __future__ import annotations

from borrador import _native
from borrador.sampling.shaping import log_total
from borrador.types import Float32Array, TokenLogprobs


def token_logprobs(logits: Float32Array, token: int, count: int) -> TokenLogprobs:
    """The log probabilities of a token and of the most likely ones, before any sampling parameter acts.

    Args:
        logits: the row that the token was chosen from.
        token: the chosen one.
        count: how many of the most likely ones to report.

    Raises:
        ModelError: no logit is finite, or one is infinite.
    """
    total = log_total(logits)
    ids, likeliest = _native.top_k(logits, count)
    top = tuple((int(other), float(logit) - total) for other, logit in zip(ids, likeliest, strict=True))
    return TokenLogprobs(token, float(logits[token]) - total, top)
