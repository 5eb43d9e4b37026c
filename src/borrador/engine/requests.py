"""From what a user asks for to a request that can be written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from borrador.config import MAX_DRAFT_TOKENS
from borrador.draft.protocol import Drafter, DraftSession
from borrador.engine.answer import Answer
from borrador.engine.line import Request
from borrador.engine.planner import Planner
from borrador.engine.prompts import Prompt, TokenPrompt
from borrador.engine.proposer import Proposer, open_sessions
from borrador.engine.round import RoundState
from borrador.engine.session import Session
from borrador.errors import ContextLengthError, UsageError
from borrador.grammar.compiler import GrammarCompiler
from borrador.grammar.matcher import Matcher
from borrador.models.prefix import CachedSequence
from borrador.models.target import Target
from borrador.sampling.rules import rule_for
from borrador.sampling.shaping import Shaper
from borrador.text.detokenizer import Detokenizer
from borrador.text.tokenizer import Tokenizer
from borrador.types import Messages, SamplingParams
from borrador.values import flag, integer


class ChatRenderer(Protocol):
    """Turns messages into a prompt; see `borrador.text.chat_template.ChatTemplate`."""

    @property
    def source(self) -> str: ...

    def render(self, messages: Messages, *, tools: Sequence[Mapping[str, Any]] | None = None) -> str: ...


@dataclass(frozen=True, slots=True)
class Drafting:
    """How an answer is drafted; see `borrador.engine.llm.LLM.stream`."""

    speculate: bool = True
    draft_tokens: int | None = None
    explain: bool = False

    def __post_init__(self) -> None:
        flag("speculate", self.speculate)
        flag("explain", self.explain)
        if self.draft_tokens is not None:
            object.__setattr__(self, "draft_tokens", integer("draft_tokens", self.draft_tokens, 0, MAX_DRAFT_TOKENS))


class Requests:
    """Checks what is asked for, and says how to open a session for it.

    Args:
        target: a sequence on the model, for its sizes.
        tokenizer: of the target.
        template: applied to messages.
        drafters: by name.
        planner: opens a plan for each request.
    """

    def __init__(
        self,
        target: Target,
        tokenizer: Tokenizer,
        template: ChatRenderer,
        drafters: Mapping[str, Drafter],
        planner: Planner,
    ) -> None:
        self._vocabulary_size = target.vocabulary_size
        self._context_length = target.context_length
        self._tokenizer = tokenizer
        self._template = template
        self._drafters = drafters
        self._planner = planner
        self._grammars = GrammarCompiler(tokenizer, target.vocabulary_size)

    def tokenize(self, prompt: Prompt) -> list[int]:
        """The token ids that the model sees for a prompt.

        Raises:
            UsageError: the prompt is empty, or not valid.
        """
        if isinstance(prompt, TokenPrompt):
            return self._known(prompt.token_ids)
        return self._encoded(self._text(prompt))

    def checked(self, params: SamplingParams | None) -> SamplingParams:
        """The parameters, greedy ones where there are none. Raises UsageError where they do not fit the vocabulary."""
        if params is None:
            return SamplingParams()
        if not isinstance(params, SamplingParams):
            raise UsageError(f"params must be SamplingParams, got {params!r:.80}", "Write SamplingParams(...).")
        params.require_vocabulary(self._vocabulary_size, self._end_ids(params))
        return params

    def prepare(self, prompt: Prompt, params: SamplingParams | None, drafting: Drafting) -> Request:
        """A request for an answer.

        Raises:
            ContextLengthError: the prompt leaves no room for an answer.
            UsageError: prompt or parameters break a rule, or the shape asked for cannot be enforced.
        """
        checked = self.checked(params)
        tokens = self._read(prompt)
        _require_room(len(tokens), self._context_length, str(len(tokens)))
        grammar = self._grammars.open(checked, len(tokens))
        return Request(
            prompt=tokens,
            open=lambda sequence: self._open(tokens, checked, grammar, drafting, sequence),
            capacity=min(checked.max_tokens, self._context_length - len(tokens)),
        )

    def _text(self, prompt: str | Messages) -> str:
        if isinstance(prompt, str):
            return prompt
        given: object = prompt
        if not isinstance(given, list | tuple):
            raise UsageError(
                f"a prompt must be text or a list of messages, got {type(given).__name__}",
                "Give a string, or a list of mappings with role and content.",
            )
        return self._template.render(prompt) if prompt else ""

    def _read(self, prompt: Prompt) -> list[int]:
        """As `tokenize`, unless a text is already known not to fit."""
        if isinstance(prompt, TokenPrompt):
            return self._known(prompt.token_ids)
        text = self._text(prompt)
        require_possible(text, self._tokenizer, self._context_length)
        return self._encoded(text)

    def _known(self, token_ids: Sequence[int]) -> list[int]:
        size = min(self._vocabulary_size, self._tokenizer.vocabulary_size)
        unknown = next((token for token in token_ids if not 0 <= token < size), None)
        if unknown is not None:
            raise UsageError(
                f"token ids of a prompt must be below the vocabulary's {size} tokens, got {unknown}", "Correct them."
            )
        return self._required(token_ids)

    def _encoded(self, text: str) -> list[int]:
        return self._required(self._tokenizer.encode_prompt(text, specials=True) if text else [])

    def _required(self, tokens: Sequence[int]) -> list[int]:
        if not tokens:
            raise UsageError("the prompt must hold at least one token, it is empty", "Say what to write about.")
        return list(tokens)

    def _end_ids(self, params: SamplingParams) -> frozenset[int]:
        model_ends: frozenset[int] = frozenset() if params.ignore_eos else self._tokenizer.eog_ids
        return model_ends.union(params.stop_token_ids)

    def _open(
        self,
        prompt: Sequence[int],
        params: SamplingParams,
        grammar: Matcher | None,
        drafting: Drafting,
        sequence: CachedSequence,
    ) -> Session:
        end_ids = self._end_ids(params)
        answer = Answer(
            Detokenizer(self._tokenizer),
            stop=params.stop,
            end_ids=end_ids,
            capacity=min(params.max_tokens, self._context_length - len(prompt)),
            least=params.min_tokens,
            shape=grammar,
        )
        shaper = Shaper(params, prompt_length=len(prompt), end_ids=end_ids, masks=grammar)
        sessions = open_sessions(self._drafters if drafting.speculate else {}, shaper, sequence.namespace)
        proposer = self._open_proposer(sessions, grammar, drafting, end_ids)
        state = RoundState(
            target=sequence.target,
            context=list(prompt),
            proposer=proposer,
            rule=rule_for(shaper),
            ending=answer,
            grammar=grammar if proposer.drafts and not params.judges_all_tokens else None,
            explains=drafting.explain,
        )
        return Session(state, answer, sequence, self._planner.observe_pass)

    def _open_proposer(
        self,
        sessions: Mapping[str, DraftSession],
        grammar: Matcher | None,
        drafting: Drafting,
        end_ids: frozenset[int],
    ) -> Proposer:
        speculate, draft_tokens = drafting.speculate, drafting.draft_tokens
        plan = self._planner.open(draft_tokens if speculate else 0)
        pass_s = self._planner.pass_s if draft_tokens is None else None
        return Proposer(sessions, plan, self._vocabulary_size, grammar, pass_s, end_ids)


def require_possible(text: str, tokenizer: Tokenizer, context_length: int) -> None:
    """Raise ContextLengthError where the length of a text alone tells that no answer to it fits into the context."""
    least = tokenizer.least_tokens(text)
    _require_room(least, context_length, f"at least {least}")


def _require_room(length: int, context_length: int, told: str) -> None:
    if length >= context_length:
        raise ContextLengthError(
            f"a prompt must be shorter than the context of {context_length} tokens, it has {told}",
            "Shorten it, or choose a larger context.",
        )
