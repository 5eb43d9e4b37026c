"""Which tokens a draft model may propose.

In a small model with a large vocabulary the LM head is a third or more of what a step reads, most of it for tokens that
hardly ever come. Source: FR-Spec (Zhao et al., arXiv 2502.14856), here without a corpus: what is frequent is read off
the vocabulary, and what is rare but comes in the request's own text is added.
"""

from __future__ import annotations

from collections.abc import Sequence

from borrador.models.target import NarrowModel, NarrowTarget, Target
from borrador.text.tokenizer import Tokenizer

AUTOMATIC_SIZE = 32768
_WORTH_WHILE = 0.1  # share of a step's weights that a shortlist must save to be made unasked
_OWN_TOKENS = 512
_FOLLOW = 0.03  # weight of one token in the share of tokens that are not listed
_MOST_MISSED = 0.2


def automatic_size(vocabulary_size: int, head_share: float) -> int:
    """How many tokens to list where nobody says so; 0 for all of them, where a list would save too little.

    Args:
        vocabulary_size: of the draft model.
        head_share: of the weights that a step reads, what belongs to the LM head.
    """
    saved = head_share * (1.0 - AUTOMATIC_SIZE / vocabulary_size)
    return AUTOMATIC_SIZE if saved >= _WORTH_WHILE else 0


def frequent_tokens(tokenizer: Tokenizer, size: int, vocabulary_size: int) -> list[int]:
    """The tokens below `vocabulary_size` with the `size` lowest ids, and all that steer the model or end an answer.

    Vocabularies of byte pairs are numbered in the order in which pairs were merged, most frequent first.
    """
    known = min(vocabulary_size, tokenizer.vocabulary_size)
    steering = (token for token in range(min(size, known), known) if tokenizer.is_control(token))
    ends = (token for token in tokenizer.eog_ids if size <= token < known)
    return sorted({*range(min(size, known)), *steering, *ends})


class Shortlist:
    """Tokens that a draft model may propose to everyone.

    Args:
        model: the draft model.
        tokens: without repetitions; those of a request's own text are added for this request.
    """

    def __init__(self, model: NarrowModel, tokens: Sequence[int]) -> None:
        self.model = model
        self.common = model.shortlist(tokens)
        self.tokens = frozenset(tokens)

    def narrow(self, target: Target) -> None:
        """Let passes of this sequence give the logits of the common tokens alone.

        Raises:
            TypeError: the sequence gives the logits of all tokens only.
        """
        _narrow(target).narrow((self.common,))

    def open(self, target: Target) -> RequestShortlist:
        """Start a request that drafts with this sequence. Errors as for `narrow`."""
        return RequestShortlist(self, _narrow(target))


class RequestShortlist:
    """The common tokens and those of one request's text.

    A text most of whose tokens are rare, as in a language with another script, is drafted with the whole vocabulary.
    """

    def __init__(self, shortlist: Shortlist, target: NarrowTarget) -> None:
        room = max(0, min(_OWN_TOKENS, target.vocabulary_size - len(shortlist.tokens)))
        self._target = target
        self._lists = (shortlist.common, shortlist.model.shortlist((), room))
        self._room = room
        self._common = shortlist.tokens
        self._own: set[int] = set()
        self._read = 0
        self._missed = 0.0
        self.whole = False
        target.narrow(self._lists)

    def follow(self, context: Sequence[int]) -> None:
        """Take up what is new in the context, which the draft model must know."""
        self._read = min(self._read, len(context))
        added: list[int] = []
        for token in context[self._read :]:
            missed = token not in self._common and token not in self._own
            self._missed += _FOLLOW * (missed - self._missed)
            if missed and len(self._own) < self._room:
                self._own.add(token)
                added.append(token)
        self._read = len(context)
        if added:
            self._lists[1].add(added)
        self._choose(self._missed > _MOST_MISSED)

    def _choose(self, whole: bool) -> None:
        if whole != self.whole:
            self.whole = whole
            self._target.narrow(() if whole else self._lists)


def _narrow(target: Target) -> NarrowTarget:
    if not isinstance(target, NarrowTarget):
        raise TypeError("this model gives the logits of all tokens only")
    return target
