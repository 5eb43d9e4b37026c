"""How the tokens of an answer are chosen, and where it ends."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from borrador import values
from borrador.errors import UsageError
from borrador.structure import check_schema, check_text

Acceptance = Literal["auto", "seeded", "rejection", "block"]
ACCEPTANCE: tuple[Acceptance, ...] = ("auto", "seeded", "rejection", "block")

MAX_COMPLETIONS = 128
MAX_LOGPROBS = 20
_MAX_STOP_STRINGS = 64
_MAX_STOP_CHARACTERS = 256
_MAX_BIASES = 1024
_INT32 = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingParams:
    """How the next token is chosen and when to stop; checked when built.

    The logits of a token's row are changed in this order, which is that of llama.cpp's default chain: `logit_bias`,
    allowed and banned tokens, the three penalties, `top_k`, `typical_p`, `top_p`, `min_p`, `temperature`. From `top_k`
    to `min_p` each step works on what the one before it left, at temperature 1.

    Args:
        temperature: 0 is greedy decoding, the most likely token of what the other steps leave; otherwise logits are
            divided by it, at most 100.
        top_k: keep the k most likely tokens; 0 keeps all.
        typical_p: keep the fewest tokens that reach this probability, those first whose information is closest to the
            expected one (Meister et al., arXiv 2202.00666), in (0, 1].
        top_p: keep the smallest set of tokens whose probability reaches top_p, in (0, 1].
        min_p: drop tokens less likely than min_p times the most likely one, in [0, 1).
        repetition_penalty: positive logits of tokens in the window are divided by it, others multiplied, in [0.01, 10].
        presence_penalty: subtracted from the logit of every token in the window, in [-2, 2].
        frequency_penalty: subtracted once for each time the token occurs in the window, in [-2, 2].
        penalty_window: how many of the last tokens, prompt included, the penalties look at; -1 means all, 0 none.
        logit_bias: added to the logits of these token ids, each in [-100, 100].
        allowed_token_ids: only these may be written; None allows all.
        banned_token_ids: these are never written.
        seed: equal seeds give equal text, with any drafter; without a seed, every answer is a fresh draw.
        acceptance: how a draft is judged at a temperature above 0: `seeded` by the choices that the seed makes,
            `rejection` token by token, `block` as a whole; see `borrador.sampling.acceptance`. `auto` is `seeded` with
            a seed and `block` without.
        lenience: 1 keeps the target's distribution. Below 1, in (0, 1], drafted tokens are accepted more often than it
            allows: a token may be up to 1 / lenience times as likely as it should be. For `rejection` without a seed.
        stop: strings that end the text; they are not part of it.
        stop_token_ids: tokens that end the answer as the model's end-of-generation tokens do; not part of it.
        min_tokens: no token ends the answer before it has this many, and stop strings are looked for only after them.
        max_tokens: the maximum number of tokens to write, at least 1.
        ignore_eos: treat the model's end-of-generation tokens like any others, and go on past them. To keep the model
            from writing them at all, set `min_tokens` instead.
        logprobs: report for every token its log probability, and this many of the most likely tokens with theirs, at
            most 20. They are the model's own, before any of the steps above. None reports nothing.
        json_schema: the answer is JSON that fits this schema, given as a dict or as JSON (kept as JSON).
        regex: the whole answer matches this regular expression.
        grammar: the answer follows this grammar in Lark's syntax. At most one of these three may be given, and
            not with `ignore_eos`, because such an answer ends where its shape does.

    Raises:
        UsageError: a value breaks its rule, or two contradict each other.
    """

    temperature: float = 0.0
    top_k: int = 0
    typical_p: float = 1.0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    penalty_window: int = 64
    logit_bias: Mapping[int, float] = field(default_factory=dict, hash=False)
    allowed_token_ids: Sequence[int] | None = None
    banned_token_ids: Sequence[int] = ()
    seed: int | None = None
    acceptance: Acceptance = "auto"
    lenience: float = 1.0
    stop: Sequence[str] = ()
    stop_token_ids: Sequence[int] = ()
    min_tokens: int = 0
    max_tokens: int = 512
    ignore_eos: bool = False
    logprobs: int | None = None
    json_schema: str | Mapping[str, Any] | None = None
    regex: str | None = None
    grammar: str | None = None

    def __post_init__(self) -> None:
        for name, value in _checked(self).items():
            object.__setattr__(self, name, value)
        if self.min_tokens > self.max_tokens:
            raise UsageError(
                f"min_tokens must not be above max_tokens, got {self.min_tokens} and {self.max_tokens}",
                "Lower the one or raise the other.",
            )
        if self.allowed_token_ids is not None and not set(self.allowed_token_ids) - set(self.banned_token_ids):
            raise UsageError(
                f"one token must be left, and of {len(self.allowed_token_ids)} allowed ones all are banned",
                "Allow another one, or ban fewer.",
            )
        self._check_acceptance()
        self._check_structure()

    @property
    def greedy(self) -> bool:
        return self.temperature == 0.0

    @property
    def structured(self) -> bool:
        """Whether the answer must have a given shape."""
        return any(shape is not None for shape in (self.json_schema, self.regex, self.grammar))

    @property
    def penalises(self) -> bool:
        """True where a token's logit depends on the tokens before it."""
        changed = self.repetition_penalty != 1.0 or self.presence_penalty != 0.0 or self.frequency_penalty != 0.0
        return changed and self.penalty_window != 0

    @property
    def judges_all_tokens(self) -> bool:
        """True where even a token to which there is no alternative needs its row of logits: its probability is asked
        for, or it may be forbidden, here or as an end that comes too early."""
        forbids = self.banned_token_ids or (self.min_tokens and self.stop_token_ids)
        return self.logprobs is not None or bool(forbids) or self.allowed_token_ids is not None

    def for_completion(self, index: int) -> SamplingParams:
        """The parameters of one of several answers to a prompt, counted from 0: a seed grows by it, modulo 2^64."""
        return self if self.seed is None else replace(self, seed=(self.seed + index) % 2**64)

    def _check_acceptance(self) -> None:
        rule, seed = self.acceptance, self.seed
        if rule not in ACCEPTANCE:
            rules = ", ".join(ACCEPTANCE)
            raise UsageError(f"acceptance must be one of {rules}, got {rule!r:.40}", "Choose one of them.")
        if rule == "seeded" and seed is None:
            raise UsageError("acceptance seeded needs a seed, and there is none", "Give one, or choose another rule.")
        if rule in ("rejection", "block") and seed is not None:
            message = f"acceptance {rule} draws afresh each time, and there is seed {seed}"
            raise UsageError(message, "Drop one of the two.")
        if self.lenience < 1.0 and (self.greedy or seed is not None or rule == "block"):
            other = "temperature 0" if self.greedy else f"acceptance {rule}" if seed is None else f"seed {seed}"
            raise UsageError(
                f"lenience below 1 needs rejection at a temperature above 0 without a seed, got {self.lenience:g} and"
                f" {other}",
                "Drop one of the two.",
            )

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

    def require_vocabulary(self, size: int, end_ids: Collection[int]) -> None:
        """Check what only the model's vocabulary can tell.

        Args:
            size: tokens in the vocabulary.
            end_ids: tokens that end this request's answer.

        Raises:
            UsageError: a token id does not exist, or there is no token that may be written.
        """
        for name in ("logit_bias", "allowed_token_ids", "banned_token_ids", "stop_token_ids"):
            unknown = [token for token in getattr(self, name) or () if token >= size]
            if unknown:
                raise UsageError(
                    f"every id of {name} must be below the vocabulary's {size} tokens, got {unknown[0]}",
                    "Take ids from this model's tokenizer.",
                )
        excluded = {*self.banned_token_ids, *(end_ids if self.min_tokens else ())}
        left = size - len(excluded) if self.allowed_token_ids is None else len(set(self.allowed_token_ids) - excluded)
        if left < 1:
            raise UsageError(
                f"one of {size} tokens must be left that may be written first, none is",
                "Allow more tokens, ban fewer, or lower min_tokens.",
            )


def _checked(given: SamplingParams) -> dict[str, Any]:
    """The values, each by its own rule."""
    number, integer, token_ids = values.number, values.integer, values.token_ids
    allowed, seed, logprobs = given.allowed_token_ids, given.seed, given.logprobs
    return {
        "temperature": number("temperature", given.temperature, 0.0, 100.0),
        "top_k": integer("top_k", given.top_k, 0, _INT32),
        "typical_p": number("typical_p", given.typical_p, 0.0, 1.0, open_low=True),
        "top_p": number("top_p", given.top_p, 0.0, 1.0, open_low=True),
        "min_p": number("min_p", given.min_p, 0.0, 1.0, open_high=True),
        "repetition_penalty": number("repetition_penalty", given.repetition_penalty, 0.01, 10.0),
        "presence_penalty": number("presence_penalty", given.presence_penalty, -2.0, 2.0),
        "frequency_penalty": number("frequency_penalty", given.frequency_penalty, -2.0, 2.0),
        "penalty_window": integer("penalty_window", given.penalty_window, -1, _INT32),
        "logit_bias": _biases(given.logit_bias),
        "allowed_token_ids": None if allowed is None else token_ids("allowed_token_ids", allowed),
        "banned_token_ids": token_ids("banned_token_ids", given.banned_token_ids),
        "seed": None if seed is None else integer("seed", seed, 0, 2**64 - 1),
        "lenience": number("lenience", given.lenience, 0.0, 1.0, open_low=True),
        "stop": _stop_strings(given.stop),
        "stop_token_ids": token_ids("stop_token_ids", given.stop_token_ids),
        "min_tokens": integer("min_tokens", given.min_tokens, 0, _INT32),
        "max_tokens": integer("max_tokens", given.max_tokens, 1, _INT32),
        "ignore_eos": values.flag("ignore_eos", given.ignore_eos),
        "logprobs": None if logprobs is None else integer("logprobs", logprobs, 0, MAX_LOGPROBS),
    }


def _biases(value: Any) -> dict[int, float]:
    if not isinstance(value, Mapping):
        raise UsageError(f"logit_bias must map token ids to numbers, got {value!r:.80}", "Give {token id: bias}.")
    if len(value) > _MAX_BIASES:
        raise UsageError(f"logit_bias takes at most {_MAX_BIASES} ids, got {len(value)}", "Remove some of them.")
    return {
        values.token_id("every id of logit_bias", token): values.number("every logit_bias", bias, -100.0, 100.0)
        for token, bias in value.items()
    }


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
        if len(text) > _MAX_STOP_CHARACTERS:
            raise UsageError(
                f"a stop string must have at most {_MAX_STOP_CHARACTERS} characters, one has {len(text)}", "Shorten it."
            )
        if not values.is_unicode(text):
            raise UsageError(f"every stop string must be valid Unicode, got {text!r:.80}", "Give it as UTF-8.")
    return tuple(value)
