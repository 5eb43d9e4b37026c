"""The nouns every package shares: tokens, sampling parameters, drafts, verdicts, events, completions."""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypedDict

import numpy as np
from numpy.typing import NDArray

from borrador.errors import UsageError
from borrador.structure import check_schema, check_text

Float32Array = NDArray[np.float32]
Float64Array = NDArray[np.float64]
Int32Array = NDArray[np.int32]
UInt32Array = NDArray[np.uint32]


class Message(TypedDict):
    """One turn of a conversation, as chat templates expect it."""

    role: str
    content: str


class Origin(str, enum.Enum):
    """Where a committed token came from."""

    DRAFT = "draft"  # proposed by a drafter and accepted
    TARGET = "target"  # the target's correction of the first miss, or a plain step
    BONUS = "bonus"  # the target's own token after a fully accepted draft
    GRAMMAR = "grammar"  # the only token that the grammar allowed


FinishReason = Literal["stop", "length", "cancelled"]

_MAX_STOP_STRINGS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingParams:
    """How the next token is chosen and when to stop; checked when built.

    Args:
        temperature: 0 is greedy decoding; otherwise logits are divided by it, at most 100.
        top_k: keep the k most likely tokens; 0 keeps all.
        top_p: keep the smallest set of tokens whose probability reaches top_p, in (0, 1].
        min_p: drop tokens less likely than min_p times the most likely one, in [0, 1).
        seed: with a seed, equal text for equal seed with any drafter; without one, a fresh draw each time.
        stop: strings that end the text; they are not part of it.
        max_tokens: the most tokens to write, at least 1.
        ignore_eos: go on past the model's end-of-generation tokens.
        json_schema: the answer is JSON that fits this schema, given as a dict or as JSON (kept as JSON).
        regex: the whole answer matches this regular expression.
        grammar: the answer follows this grammar in Lark's syntax. At most one of the last three; they exclude
            `ignore_eos`, since such an answer ends where its shape does.

    Raises:
        UsageError: a value breaks its rule.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    seed: int | None = None
    stop: tuple[str, ...] = ()
    max_tokens: int = 512
    ignore_eos: bool = False
    json_schema: str | Mapping[str, Any] | None = None
    regex: str | None = None
    grammar: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "stop", _stop_strings(self.stop))
        _require_number("temperature", self.temperature, 0.0, 100.0)
        _require_number("top_p", self.top_p, 0.0, 1.0, open_low=True)
        _require_number("min_p", self.min_p, 0.0, 1.0, open_high=True)
        _require_integer("top_k", self.top_k, 0, 2**31 - 1)
        _require_integer("max_tokens", self.max_tokens, 1, 2**31 - 1)
        if self.seed is not None:
            _require_integer("seed", self.seed, 0, 2**64 - 1)
        if not isinstance(self.ignore_eos, bool):
            raise UsageError(f"ignore_eos must be true or false, got {self.ignore_eos!r}", "Give True or False.")
        self._check_structure()

    @property
    def structured(self) -> bool:
        """Whether the answer must have a given shape."""
        return any(shape is not None for shape in (self.json_schema, self.regex, self.grammar))

    def _check_structure(self) -> None:
        if self.json_schema is not None:
            object.__setattr__(self, "json_schema", check_schema(self.json_schema))
        given = [name for name in ("json_schema", "regex", "grammar") if getattr(self, name) is not None]
        for name in given[given[:1] == ["json_schema"] :]:
            check_text(name, getattr(self, name))
        if len(given) > 1:
            raise UsageError(f"an answer has at most one shape, got {' and '.join(given)}", "Leave one of them out.")
        if given and self.ignore_eos:
            raise UsageError(f"ignore_eos cannot hold with {given[0]}, whose end is the answer's", "Drop one of them.")

    @property
    def greedy(self) -> bool:
        return self.temperature == 0.0


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
            where it has none. It need not be calibrated: how often a belief comes true is learnt.
    """

    tokens: tuple[int, ...] = ()
    parents: tuple[int, ...] | None = None
    q: Float32Array | None = None
    drafter: str = "none"
    confidence: tuple[float, ...] = ()

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


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the target says of a draft.

    Attributes:
        path: indices into the draft's tokens that were accepted, in order.
        next_token: the target's own token after them: its correction of the first miss, or the bonus token.
        bonus: True when the whole draft (a whole branch of it) was accepted.
        tested: how many draft tokens were compared with the target's choice (accepted + the first miss).
    """

    path: tuple[int, ...]
    next_token: int
    bonus: bool
    tested: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundRecord:
    """One round as it happened, for traces and statistics. Times in seconds.

    `committed` are the tokens that became part of the answer (cut at a stop), `origins` tells where each came from.
    The draft is kept without its q, which is large. The pass evaluated `pending` tokens of the context, then the draft.
    """

    number: int
    draft: Draft
    verdict: Verdict
    committed: tuple[int, ...]
    origins: tuple[Origin, ...]
    draft_s: float
    forward_s: float
    total_s: float
    pending: int = 1


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
    """

    text: str
    token_ids: tuple[int, ...]
    origin: Origin
    round: int
    record: RoundRecord | None = None
    finish_reason: FinishReason | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationStats:
    """What an answer cost. Times in seconds; decode excludes the prompt.

    `prompt_tokens_cached` of the prompt's tokens were in the cache already, and cost nothing. `grammar_tokens` of the
    answer's were the only ones its grammar allowed, and no pass had to choose them.
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
    """A finished answer."""

    text: str
    token_ids: tuple[int, ...]
    origins: tuple[Origin, ...]
    finish_reason: FinishReason
    stats: GenerationStats = field(default_factory=GenerationStats)


def _stop_strings(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        value = (value,)
    if not isinstance(value, list | tuple):
        raise UsageError(f"stop must be text or a list of texts, got {value!r:.80}", "Give a list of strings.")
    if len(value) > _MAX_STOP_STRINGS:
        raise UsageError(f"stop takes at most {_MAX_STOP_STRINGS} strings, got {len(value)}", "Remove some of them.")
    for text in value:
        if not isinstance(text, str) or not text:
            raise UsageError(f"every stop string must be non-empty text, got {text!r:.80}", "Remove or correct it.")
        if not is_unicode(text):
            raise UsageError(f"every stop string must be valid Unicode, got {text!r:.80}", "Give it as UTF-8.")
    return tuple(value)


def is_unicode(text: str) -> bool:
    """Whether a string can be written as UTF-8: it holds no lone surrogates, as undecodable arguments do."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _require_number(
    name: str, value: Any, low: float, high: float, *, open_low: bool = False, open_high: bool = False
) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UsageError(f"{name} must be a number, got {value!r}", f"Give a number between {low:g} and {high:g}.")
    below = value <= low if open_low else value < low
    above = value >= high if open_high else value > high
    if math.isnan(value) or below or above:
        interval = f"{'(' if open_low else '['}{low:g}, {high:g}{')' if open_high else ']'}"
        raise UsageError(f"{name} must be in {interval}, got {value}", "Choose a value inside the interval.")


def _require_integer(name: str, value: Any, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise UsageError(f"{name} must be a whole number, got {value!r}", f"Give a whole number of at least {low}.")
    if not low <= value <= high:
        raise UsageError(f"{name} must be from {low} to {high}, got {value}", "Choose a value inside the limits.")
