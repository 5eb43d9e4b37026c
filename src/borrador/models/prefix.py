"""A sequence that outlives a request, so that the next one need not evaluate again what both begin with."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from borrador.models.target import Rows, Target

PREFILL_ROWS = 512


class CachedSequence:
    """A target and the ids of the tokens in its cache.

    Attributes:
        target: the sequence on the model; while a request runs, its cache may grow past `tokens`.
        tokens: what the cache is known to hold.
    """

    def __init__(self, target: Target) -> None:
        self.target = target
        self.tokens: list[int] = []

    def resume(self, prompt: Sequence[int]) -> None:
        """Keep the longest common beginning of cache and prompt, but leave at least the prompt's last token to do."""
        kept = min(common_prefix(self.tokens, prompt), len(prompt) - 1)
        self.target.rewind(kept)
        del self.tokens[kept:]

    def settle(self, context: Sequence[int]) -> None:
        """Note what the cache holds after a request with this context, however the request ended."""
        kept = min(self.target.length, len(context))
        self.target.rewind(kept)
        self.tokens = list(context[:kept])


class SequencePool:
    """Sequences that requests take and give back; more are opened where none is left.

    Args:
        open_target: opens a sequence on the model.
    """

    def __init__(self, open_target: Callable[[], Target]) -> None:
        self._open_target = open_target
        self._idle: list[CachedSequence] = []

    def take(self, prompt: Sequence[int]) -> CachedSequence:
        """The sequence that holds most of the prompt's beginning, or else holds least.

        Raises:
            MemoryLimitError: none is left, and another one cannot be had.
        """
        if not self._idle:
            return CachedSequence(self._open_target())
        best = max(self._idle, key=lambda idle: (common_prefix(idle.tokens, prompt), -len(idle.tokens)))
        self._idle.remove(best)
        return best

    def give_back(self, sequence: CachedSequence) -> None:
        """Keep a sequence for the next request, which may begin alike."""
        self._idle.append(sequence)

    def close(self) -> None:
        """Let go of all sequences."""
        self._idle.clear()


def common_prefix(a: Sequence[int], b: Sequence[int]) -> int:
    """How many tokens two sequences have in common at their beginning."""
    for index, (left, right) in enumerate(zip(a, b, strict=False)):
        if left != right:
            return index
    return min(len(a), len(b))


def prefill(target: Target, context: Sequence[int]) -> None:
    """Bring the cache up to the context's last 512 tokens or fewer, in passes of 512 rows without logits."""
    while len(context) - target.length > PREFILL_ROWS:
        start = target.length
        target.forward(Rows.chain(context[start : start + PREFILL_ROWS], logits_from=PREFILL_ROWS))
        target.commit(range(PREFILL_ROWS))
