"""A sequence that outlives a request, so that the next one need not evaluate again what both begin with."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence

from borrador.errors import MemoryLimitError
from borrador.models.target import Rows, Target

PREFILL_ROWS = 512
_BLOCK = 64


class CachedSequence:
    """A target and the ids of the tokens in its cache.

    Attributes:
        target: the sequence on the model; while a request runs, its cache may grow past `tokens`.
        tokens: what the cache is known to hold.
        namespace: whose tokens they are.
    """

    def __init__(self, target: Target, namespace: str = "") -> None:
        self.target = target
        self.tokens: list[int] = []
        self.namespace = namespace

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

    def clear(self, namespace: str = "") -> None:
        """Hold nothing, for a request of this namespace."""
        self.target.rewind(0)
        self.tokens.clear()
        self.namespace = namespace

    def copy(self, source: CachedSequence, length: int) -> None:
        """Hold the first tokens of another sequence of the same namespace."""
        self.target.copy_from(source.target, length)
        self.tokens = source.tokens[:length]


class SequencePool:
    """Sequences that requests take and give back; more are opened where none is left.

    Those that lie idle keep their tokens, the ones used last the longest. A request begins with what one of its own
    namespace holds of its prompt; it never meets tokens of another namespace.

    Args:
        open_target: opens a sequence on the model.
        most: sequences, idle or not, that are kept before idle ones are used for something else.
    """

    def __init__(self, open_target: Callable[[], Target], most: int = 1) -> None:
        self.most = most
        self._open_target = open_target
        self._idle: list[CachedSequence] = []  # the one used last is the last
        self._taken = 0

    def take(self, prompt: Sequence[int], namespace: str = "") -> CachedSequence:
        """A sequence that holds as much of the prompt's beginning as an idle one does.

        Raises:
            MemoryLimitError: none is left, and another one cannot be had.
        """
        best, shared = self._find(prompt, namespace)
        is_full = self._taken + len(self._idle) >= self.most
        sequence = self._vacant(is_full) if best is None or (shared < len(best.tokens) and not is_full) else None
        if sequence is None:
            sequence = best or self._idle[0]
            self._idle.remove(sequence)
        if sequence is not best:
            sequence.clear(namespace)
            self._share(best, sequence, shared)
        self._taken += 1
        return sequence

    def give_back(self, sequence: CachedSequence) -> None:
        """Keep a sequence for the next request of its namespace, which may begin alike."""
        self._taken -= 1
        self._idle.append(sequence)

    def reclaim(self) -> bool:
        """Drop the tokens of the idle sequence that was used longest ago; whether there was one that held any."""
        for sequence in self._idle:
            if sequence.target.length:
                sequence.clear()
                return True
        return False

    def forget(self) -> None:
        """Drop the tokens of all idle sequences."""
        for sequence in self._idle:
            sequence.clear()

    def close(self) -> None:
        """Let go of all sequences."""
        self._idle.clear()

    def _find(self, prompt: Sequence[int], namespace: str) -> tuple[CachedSequence | None, int]:
        """The idle sequence of a namespace that shares most with a prompt, and how much; None where all share nothing.

        Of those that share as much, the shortest is the first choice, since least of it is lost.
        """
        found: CachedSequence | None = None
        shared = 0
        for idle in self._idle:
            if idle.namespace != namespace:
                continue
            length = common_prefix(idle.tokens, prompt)
            if length > shared or (found is not None and length == shared and len(idle.tokens) < len(found.tokens)):
                found, shared = idle, length
        return found, shared

    def _vacant(self, is_full: bool) -> CachedSequence | None:
        """An idle sequence that holds nothing, or a new one; None where those that hold something are to be used."""
        idle = next((idle for idle in self._idle if not idle.target.length), None)
        if idle is not None:
            self._idle.remove(idle)
        if idle is not None or (is_full and self._idle):
            return idle
        try:
            return CachedSequence(self._open_target())
        except MemoryLimitError:
            if not self._idle:
                raise
            return None

    def _share(self, source: CachedSequence | None, sequence: CachedSequence, length: int) -> None:
        if source is None:
            return
        with contextlib.suppress(MemoryLimitError):  # then the request evaluates all of its prompt
            sequence.copy(source, length)
        self._idle.remove(source)
        self._idle.append(source)


def common_prefix(a: Sequence[int], b: Sequence[int]) -> int:
    """How many tokens two sequences have in common at their beginning."""
    length = min(len(a), len(b))
    for start in range(0, length, _BLOCK):  # Python compares blocks many times faster than tokens
        left, right = a[start : start + _BLOCK], b[start : start + _BLOCK]
        if left == right:
            continue
        for offset, (one, other) in enumerate(zip(left, right, strict=False)):
            if one != other:
                return start + offset
    return length


def prefill(target: Target, context: Sequence[int]) -> None:
    """Bring the cache up to the context's last 512 tokens or fewer, in passes of 512 rows without logits."""
    while len(context) - target.length > PREFILL_ROWS:
        start = target.length
        target.forward(Rows.chain(context[start : start + PREFILL_ROWS], logits_from=PREFILL_ROWS))
        target.commit(range(PREFILL_ROWS))
