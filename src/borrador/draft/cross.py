"""Drafts written by a smaller model with another vocabulary than the target's.

The text is re-encoded for the draft model, and what it writes is encoded as the target writes: drafts of certain
tokens, which every acceptance rule judges exactly. Source: Timor et al., "Accelerating LLM Inference with Lossless
Speculative Decoding Algorithms for Heterogeneous Vocabularies" (arXiv 2502.05202), string-level exact match.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from borrador.draft.model import ModelDrafter, ModelDraftSession
from borrador.draft.protocol import CERTAIN, GoOn, Price, always, believed
from borrador.draft.steps import Steps, alone
from borrador.draft.transcript import Transcript, continue_with, counterpart
from borrador.sampling.shaping import Shaper
from borrador.text.tokenizer import Tokenizer
from borrador.types import Draft, SamplingParams

_ASSUMED_RATIO = 1.2  # draft tokens for a token of the target
_DOUBT = 0.75  # of a last token, which may be the beginning of a longer one


class CrossDrafter:
    """A draft model with a vocabulary of its own.

    Args:
        drafter: of the draft model, with that model's vocabulary; closed with this one.
        own: the draft model's tokenizer.
        target: the target's tokenizer.
    """

    def __init__(self, drafter: ModelDrafter, own: Tokenizer, target: Tokenizer) -> None:
        self.name = drafter.name
        self.variant = drafter.variant
        self.drafter = drafter
        self.own = own
        self.target = target

    def open(self, _shaper: Shaper, /) -> CrossSession:
        """Start drafting for a request. The draft model chooses greedily, however the target does."""
        return self.open_in("", _shaper)

    def open_in(self, namespace: str, _shaper: Shaper, /) -> CrossSession:
        return CrossSession(self, self.drafter.open_in(namespace, Shaper(SamplingParams())))

    def price(self) -> Price:
        token_s, context_token_s = self.drafter.price()
        return Price(token_s * _ASSUMED_RATIO, context_token_s * _ASSUMED_RATIO)

    def forget_texts(self) -> None:
        self.drafter.forget_texts()

    def limit_cache(self, limit_bytes: int | None) -> None:
        self.drafter.limit_cache(limit_bytes)

    def cache_bytes(self, tokens: int) -> int:
        return self.drafter.cache_bytes(math.ceil(_ASSUMED_RATIO * tokens))

    def close(self) -> None:
        self.drafter.close()


class CrossSession:
    """One request's drafting in two vocabularies. `unread` counts tokens of the draft model.

    A token's confidence is the product of the draft model's probabilities of the pieces that begin in it, so that those
    of a path multiply to the probability of its text.
    """

    def __init__(self, drafter: CrossDrafter, session: ModelDraftSession) -> None:
        self._drafter = drafter
        self._session = session
        self._transcript = Transcript(drafter.target, drafter.own)

    def propose(self, context: Sequence[int], budget: int, go_on: GoOn = always) -> Draft:
        return alone(self.steps(context, budget, go_on))

    def steps(self, context: Sequence[int], budget: int, go_on: GoOn = always) -> Steps[Draft]:
        text = self._follow(context)
        ratio = max(1.0, len(text) / max(1, len(context)))
        written = (yield from self._session.steps(text, math.ceil(budget * ratio), go_on)) if budget > 0 else Draft()
        pieces, end = self._pieces(written)
        tokens, beliefs = self._translate(context, pieces, complete=end is not None)
        if end is not None and (tokens or not (pieces or self._transcript.pending)):
            tokens, beliefs = [*tokens, end[0]], [*beliefs, end[1]]
        draft = Draft(tokens=tuple(tokens), drafter=self._drafter.name, confidence=tuple(beliefs))
        return draft.first(max(budget, 0))

    def unread(self, context: Sequence[int]) -> int:
        return self._session.unread(self._follow(context))

    def observe(self, committed: Sequence[int]) -> None:
        pass

    def close(self) -> None:
        self._session.close()

    def _follow(self, context: Sequence[int]) -> list[int]:
        """The context in the draft model's tokens."""
        if len(context) != self._transcript.length:
            self._session.recheck(self._transcript.follow(context))
        return self._transcript.tokens

    def _pieces(self, written: Draft) -> tuple[list[tuple[bytes, float]], tuple[int, float] | None]:
        """The text of the draft model's tokens, each with its probability, and the control token that follows it."""
        pieces: list[tuple[bytes, float]] = []
        for token, belief in zip(written.tokens, written.confidence, strict=True):
            if self._drafter.own.is_control(token):
                control = counterpart(token, self._drafter.own, self._drafter.target)
                return pieces, None if control is None else (control, belief)
            pieces.append((self._drafter.own.token_bytes(token), belief))
        return pieces, None

    def _translate(
        self, context: Sequence[int], pieces: Sequence[tuple[bytes, float]], *, complete: bool
    ) -> tuple[list[int], list[float]]:
        """The target's tokens for these pieces of text, with their confidence.

        Args:
            complete: a control token follows; otherwise the last token may be the beginning of a longer one.
        """
        data, pending = b"".join(piece for piece, _ in pieces), self._transcript.pending
        if not data.startswith(pending) or len(data) == len(pending):
            return [], []
        tokens = continue_with(data[len(pending) :], context, self._drafter.target)
        beliefs = self._beliefs(tokens, pieces, len(pending))
        if beliefs and not complete:
            beliefs[-1] *= _DOUBT
        return tokens, beliefs

    def _beliefs(self, tokens: Sequence[int], pieces: Sequence[tuple[bytes, float]], start: int) -> list[float]:
        beliefs: list[float] = []
        left, begin = list(pieces), 0
        for token in tokens:
            start += len(self._drafter.target.token_bytes(token))
            belief = CERTAIN
            while left and begin < start:
                data, probability = left.pop(0)
                belief *= probability
                begin += len(data)
            beliefs.append(believed(belief))
        return beliefs
