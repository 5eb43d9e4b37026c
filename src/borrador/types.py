"""The nouns every package shares: tokens, sampling parameters, drafts, verdicts, events, completions."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypedDict

import numpy as np
from numpy.typing import NDArray

from borrador.params import SamplingParams as SamplingParams

Float32Array = NDArray[np.float32]
Float64Array = NDArray[np.float64]
Int32Array = NDArray[np.int32]
UInt32Array = NDArray[np.uint32]


class Message(TypedDict):
    """One turn of a conversation, as chat templates expect it."""

    role: str
    content: str


# Turns of a conversation, each with `role` and `content`.
Messages = Sequence[Mapping[str, object]]


class Origin(str, enum.Enum):
    """Where a committed token came from."""

    DRAFT = "draft"  # proposed by a drafter and accepted
    TARGET = "target"  # the target's correction of the first miss, or a plain step
    BONUS = "bonus"  # the target's own token after a fully accepted draft
    GRAMMAR = "grammar"  # the only token that the grammar allowed


FinishReason = Literal["stop", "length", "cancelled", "timeout"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """Tokens proposed by a drafter. A chain unless `parents` says otherwise.

    A draft that carries q is judged as one whose tokens were drawn from q, by chance of the drafter's own. Siblings
    stand in the order in which they were drawn, without replacement: each from q without the siblings before it,
    normalised again, so that no token stands twice below a parent. Whether a token belongs to the draft may depend on
    tokens drawn before it, never on itself or on later ones: what was drawn is not pruned by what it is. Without a seed
    the answer follows the target's distribution only if all this is true.

    Attributes:
        tokens: proposed token ids, γ of them.
        parents: per token the index of its parent in `tokens`, -1 for a child of the context's last token;
            None is a chain. A parent always comes before its children.
        q: for drawn tokens, γ x vocabulary probabilities that they were really drawn from, a row per parent as in the
            target's logits: row 0 for the children of the context's last token, row i + 1 for those of token i, and so
            in a chain row i for token i. Rows of tokens without children are not read. None where each token was
            certain (a point mass), or where not all were drawn in this way: any draft may be judged as certain, and is
            then accepted less often.
        drafter: the name of the drafter that proposed it.
        confidence: per token the drafter's own belief, from 0 to 1, that it is right if those before it are; empty
            where it has none. It need not be calibrated: how often a belief comes true is learnt. 1 is for tokens to
            which there is no alternative.
    """

    tokens: tuple[int, ...] = ()
    parents: tuple[int, ...] | None = None
    q: Float32Array | None = None
    drafter: str = "none"
    confidence: tuple[float, ...] = ()

    @property
    def parent_indices(self) -> Sequence[int]:
        """Per token the index of its parent, whether or not the draft is a chain."""
        return range(-1, len(self.tokens) - 1) if self.parents is None else self.parents

    @property
    def depth(self) -> int:
        """How many tokens follow one another on the longest path."""
        depths: list[int] = []
        for parent in self.parent_indices:
            depths.append(1 + (depths[parent] if parent >= 0 else 0))
        return max(depths, default=0)

    def first(self, count: int) -> Draft:
        """The draft of the first `count` tokens alone. For drawn tokens the count must not depend on those left out."""
        if count >= len(self.tokens):
            return self
        return Draft(
            tokens=self.tokens[:count],
            parents=self.parents and self.parents[:count],
            q=None if self.q is None else self.q[:count],
            drafter=self.drafter,
            confidence=self.confidence[:count],
        )

    def path_to(self, row: int) -> tuple[int, ...]:
        """The draft tokens before a row of logits: none before row 0, token i and its ancestors before row i + 1."""
        if self.parents is None:
            return self.tokens[:row]
        path: list[int] = []
        index = row - 1
        while index >= 0:
            path.append(self.tokens[index])
            index = self.parents[index]
        return tuple(reversed(path))


NO_DRAFT = Draft()


class TokenLogprobs(NamedTuple):
    """Log probabilities at temperature 1 by the model itself, before any sampling parameter acts.

    Attributes:
        token_id: the token that was written.
        logprob: its natural log probability; minus infinity where the model excludes it.
        top: the most likely tokens of the row, most likely first, with theirs.
    """

    token_id: int
    logprob: float
    top: tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the target says of a draft.

    Attributes:
        path: indices into the draft's tokens that were accepted, in order.
        next_token: the target's own token after them: its correction of the first miss, or the bonus token.
        bonus: True when the whole draft (a whole branch of it) was accepted.
        tested: how many draft tokens were compared with the target's choice (accepted + the first miss).
        logprobs: of the accepted tokens and the target's own, where the request asks for them; else empty.
    """

    path: tuple[int, ...]
    next_token: int
    bonus: bool
    tested: int
    logprobs: tuple[TokenLogprobs, ...] = ()


class Consideration(NamedTuple):
    """What a round expected of one drafter.

    Attributes:
        drafter: its name.
        proposed: how many tokens it proposed; 0 where it was not asked or had none.
        expected: how many of them were expected to be accepted, if all were verified.
        gain: for drafters whose tokens cost time, the speed expected of a round with them, as a multiple of plain
            decoding's; None for those that cost none.
        note: why it was asked or not; empty for drafters that are always asked.
    """

    drafter: str
    proposed: int
    expected: float
    gain: float | None
    note: str


class Reason(NamedTuple):
    """Why a round verified what it did.

    Attributes:
        plain_s: seconds that a pass without a draft was expected to take.
        round_s: seconds that drafting and the pass were expected to take.
        expected: how many tokens of the draft were expected to be accepted.
        speed: the speed expected of the round, as a multiple of plain decoding's.
        considered: every drafter.
    """

    plain_s: float
    round_s: float
    expected: float
    speed: float
    considered: tuple[Consideration, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundRecord:
    """One round as it happened, for traces and statistics. Times in seconds.

    `committed` are the tokens that became part of the answer (cut at a stop), and `origins` where each came from. The
    draft is kept without its q, which is large. The pass evaluated `pending` tokens of the context, then the draft.
    `sample_s` is the time of the acceptance rule, which shapes and samples. `reason` is set if the request asked for it
    and costs decided how much to draft.
    """

    number: int
    draft: Draft
    verdict: Verdict
    committed: tuple[int, ...]
    origins: tuple[Origin, ...]
    draft_s: float
    forward_s: float
    total_s: float
    sample_s: float = 0.0
    pending: int = 1
    reason: Reason | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationEvent:
    """One step of an answer as it is streamed. The texts of all events joined are the answer.

    Attributes:
        text: text that is now certain (may be empty while a character or a possible stop string is incomplete).
        token_ids: the committed tokens this event stands for (one; none in a closing event that only flushes text).
        origin: where the token came from.
        round: number of the round that committed it, counting from 1.
        record: on the last event of a round, the round; else None.
        finish_reason: set on the last event only.
        logprobs: of the token, where the request asks for them.
    """

    text: str
    token_ids: tuple[int, ...]
    origin: Origin
    round: int
    record: RoundRecord | None = None
    finish_reason: FinishReason | None = None
    logprobs: TokenLogprobs | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationStats:
    """What an answer cost. Times in seconds; decode excludes the prompt.

    `prompt_tokens_cached` counts the prompt's tokens that were already in the cache and cost nothing. `grammar_tokens`
    counts the answer's tokens that were the only ones its grammar allowed, so that no pass had to choose them.
    """

    prompt_tokens: int = 0
    prompt_tokens_cached: int = 0
    completion_tokens: int = 0
    target_passes: int = 0
    draft_tokens_proposed: int = 0
    draft_tokens_tested: int = 0
    draft_tokens_accepted: int = 0
    grammar_tokens: int = 0
    prefill_s: float = 0.0
    decode_s: float = 0.0
    draft_s: float = 0.0
    forward_s: float = 0.0
    sample_s: float = 0.0

    @property
    def tokens_per_second(self) -> float:
        """Decoding speed; the first token comes out of the prompt's own pass and is not counted."""
        return max(self.completion_tokens - 1, 0) / self.decode_s if self.decode_s else 0.0

    @property
    def tokens_per_pass(self) -> float:
        return self.completion_tokens / self.target_passes if self.target_passes else 0.0

    @property
    def acceptance(self) -> float:
        """Accepted / tested draft tokens; 0 where none was tested."""
        return self.draft_tokens_accepted / self.draft_tokens_tested if self.draft_tokens_tested else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """A finished answer.

    `logprobs` has one entry per token where the request asks for them, else it is None.
    """

    text: str
    token_ids: tuple[int, ...]
    origins: tuple[Origin, ...]
    finish_reason: FinishReason
    logprobs: tuple[TokenLogprobs, ...] | None = None
    stats: GenerationStats = field(default_factory=GenerationStats)
