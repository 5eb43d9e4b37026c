"""The library's face: generate and stream answers. `borrador.engine.loading` builds it from files."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import NamedTuple, Protocol, overload

from borrador.config import DEFAULT_CONTEXT, MAX_DRAFT_TOKENS
from borrador.draft.protocol import Drafter
from borrador.engine.answer import Answer
from borrador.engine.planner import Planner
from borrador.engine.profile import Profile
from borrador.engine.proposer import Proposer
from borrador.engine.round import RoundState
from borrador.engine.session import Session
from borrador.engine.stream import AnswerStream
from borrador.errors import ContextLengthError, UsageError
from borrador.grammar.compiler import GrammarCompiler
from borrador.grammar.matcher import Matcher
from borrador.models.prefix import CachedSequence
from borrador.models.target import Model
from borrador.params import MAX_COMPLETIONS
from borrador.sampling.rules import rule_for
from borrador.sampling.shaping import Shaper
from borrador.text.detokenizer import Detokenizer
from borrador.text.tokenizer import Tokenizer
from borrador.types import Completion, Messages, SamplingParams
from borrador.values import flag, integer

Prompt = str | Messages


class _Asked(NamedTuple):
    """How an answer is to be drafted; see `LLM.stream`."""

    speculate: bool
    draft_tokens: int | None
    explain: bool


class ChatRenderer(Protocol):
    """Turns messages into a prompt; see `borrador.text.chat_template.ChatTemplate`."""

    def render(self, messages: Messages) -> str: ...


class LLM:
    """A target model with its drafters. Calls from several threads are served one after another.

    A prompt is either text, which is continued as it stands, or a list of messages, to which the chat template is
    applied. Control tokens spelt out in a text are control tokens.

    Args:
        model: the target; closed with the LLM.
        tokenizer: of the target.
        template: applied to messages.
        drafters: in order of preference; closed with the LLM.
        context_length: the most tokens of prompt and answer together.
        draft_tokens: tokens drafted each round; None chooses by costs, which are then measured here.
        profile: where what was measured and learnt is kept for the next start; None keeps nothing.
    """

    def __init__(
        self,
        model: Model,
        tokenizer: Tokenizer,
        template: ChatRenderer,
        drafters: Sequence[Drafter] = (),
        *,
        context_length: int = DEFAULT_CONTEXT,
        draft_tokens: int | None = None,
        profile: Profile | None = None,
    ) -> None:
        self._model = model
        self._tokenizer = tokenizer
        self._template = template
        self._drafters = {drafter.name: drafter for drafter in drafters}
        self._sequence = CachedSequence(model.open(context_length))
        self._grammars = GrammarCompiler(tokenizer, self._sequence.target.vocabulary_size)
        self._planner = Planner(self._sequence.target, self._drafters, draft_tokens=draft_tokens, profile=profile)
        self._lock = threading.Lock()
        self._writer: int | None = None  # the thread whose answer is being written
        self._stream: weakref.ref[AnswerStream] | None = None
        self._closed = False

    @property
    def context_length(self) -> int:
        """The most tokens of prompt and answer together."""
        return self._sequence.target.context_length

    def stream(
        self,
        prompt: Prompt,
        params: SamplingParams | None = None,
        *,
        speculate: bool = True,
        draft_tokens: int | None = None,
        explain: bool = False,
    ) -> AnswerStream:
        """Write an answer event by event.

        Args:
            prompt: text or messages.
            params: how tokens are chosen and when to stop; the default is greedy.
            speculate: False decodes plainly, without drafters.
            draft_tokens: tokens drafted each round of this answer, from 0 to 64; None is as the LLM was loaded.
            explain: let the records of rounds say why they drafted what they did.

        Raises:
            ContextLengthError: the prompt leaves no room for an answer.
            UsageError: the prompt is empty or not valid, the parameters do not fit the model's vocabulary, the shape
                asked for cannot be enforced, the LLM is closed, or (at the first event) this thread has not finished or
                closed its last answer.
        """
        self._require_open()
        params, speculate = self._checked(params), flag("speculate", speculate)
        if draft_tokens is not None:
            draft_tokens = integer("draft_tokens", draft_tokens, 0, MAX_DRAFT_TOKENS)
        tokens = self.tokenize(prompt)
        limit = self.context_length
        if len(tokens) >= limit:
            raise ContextLengthError(
                f"a prompt must be shorter than the context of {limit} tokens, it has {len(tokens)}",
                "Shorten it, or choose a larger context.",
            )
        grammar = self._grammars.open(params, len(tokens))
        plan = _Asked(speculate, draft_tokens, flag("explain", explain))
        return AnswerStream(self._turn, lambda: self._open_session(tokens, params, grammar, plan))

    @overload
    def generate(
        self,
        prompt: Prompt,
        params: SamplingParams | None = None,
        *,
        speculate: bool = True,
        draft_tokens: int | None = None,
    ) -> Completion: ...

    @overload
    def generate(
        self,
        prompt: Prompt,
        params: SamplingParams | None = None,
        *,
        n: int,
        speculate: bool = True,
        draft_tokens: int | None = None,
    ) -> list[Completion]: ...

    def generate(
        self,
        prompt: Prompt,
        params: SamplingParams | None = None,
        *,
        n: int | None = None,
        speculate: bool = True,
        draft_tokens: int | None = None,
    ) -> Completion | list[Completion]:
        """Write a whole answer, or `n` of them. Arguments and errors as for `stream`.

        Args:
            n: write so many answers, at most 128, and give a list of them. The prompt is evaluated once. Answer i,
                counted from 0, is the one that the seed + i (modulo 2^64) gives on its own; without a seed each is a
                fresh draw.
        """
        if n is None:
            return self._complete(self.stream(prompt, params, speculate=speculate, draft_tokens=draft_tokens), params)
        count, params = integer("n", n, 1, MAX_COMPLETIONS), self._checked(params)
        answers = (params.for_completion(index) for index in range(count))
        return [
            self._complete(self.stream(prompt, each, speculate=speculate, draft_tokens=draft_tokens), each)
            for each in answers
        ]

    def _complete(self, stream: AnswerStream, params: SamplingParams | None) -> Completion:
        with stream:
            events = list(stream)
            logprobs = tuple(event.logprobs for event in events if event.logprobs is not None)
            asked = params is not None and params.logprobs is not None
            return Completion(
                text="".join(event.text for event in events),
                token_ids=tuple(token for event in events for token in event.token_ids),
                origins=tuple(event.origin for event in events if event.token_ids),
                finish_reason=events[-1].finish_reason or "stop",
                logprobs=logprobs if asked else None,
                stats=stream.stats,
            )

    def tokenize(self, prompt: Prompt) -> list[int]:
        """The token ids that the model sees for a prompt.

        Raises:
            UsageError: the prompt is empty, or not valid.
        """
        text = prompt if isinstance(prompt, str) else self._template.render(prompt) if prompt else ""
        tokens = self._tokenizer.encode_prompt(text, specials=True) if text else []
        if not tokens:
            raise UsageError("the prompt must hold at least one token, it is empty", "Say what to write about.")
        return tokens

    def token_text(self, token_id: int) -> str:
        """A token for people to read. Raises UsageError for an id that the model does not have."""
        return self._tokenizer.token_text(integer("token_id", token_id, 0, self._tokenizer.vocabulary_size - 1))

    def close(self) -> None:
        """Free models and caches; an answer that this thread left unfinished is cancelled. Safe to call twice."""
        unfinished = self._stream() if self._stream is not None else None
        if unfinished is not None and self._writer == threading.get_ident():
            unfinished.close()
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._planner.save()
            with ExitStack() as closing:
                closing.callback(self._model.close)
                for drafter in self._drafters.values():
                    closing.callback(drafter.close)

    def __enter__(self) -> LLM:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @contextmanager
    def _turn(self, stream: weakref.ref[AnswerStream]) -> Iterator[None]:
        if self._writer == threading.get_ident():
            raise UsageError(
                "one answer at a time can be written in a thread, and another is unfinished",
                "Finish or close it first.",
            )
        with self._lock:
            self._require_open()
            self._writer, self._stream = threading.get_ident(), stream
            try:
                yield
            finally:
                self._writer = self._stream = None

    def _require_open(self) -> None:
        if self._closed:
            raise UsageError("this LLM is closed", "Load the model again.")

    def _checked(self, params: SamplingParams | None) -> SamplingParams:
        if params is None:
            return SamplingParams()
        if not isinstance(params, SamplingParams):
            raise UsageError(f"params must be SamplingParams, got {params!r:.80}", "Write SamplingParams(...).")
        params.require_vocabulary(self._sequence.target.vocabulary_size, self._end_ids(params))
        return params

    def _end_ids(self, params: SamplingParams) -> frozenset[int]:
        model_ends: frozenset[int] = frozenset() if params.ignore_eos else self._tokenizer.eog_ids
        return model_ends.union(params.stop_token_ids)

    def _open_session(
        self,
        prompt: Sequence[int],
        params: SamplingParams,
        grammar: Matcher | None,
        asked: _Asked,
    ) -> Session:
        target, end_ids = self._sequence.target, self._end_ids(params)
        answer = Answer(
            Detokenizer(self._tokenizer),
            stop=params.stop,
            end_ids=end_ids,
            capacity=min(params.max_tokens, target.context_length - len(prompt)),
            least=params.min_tokens,
            shape=grammar,
        )
        drafters = self._drafters if asked.speculate else {}
        shaper = Shaper(params, prompt_length=len(prompt), end_ids=end_ids, masks=grammar)
        sessions = {name: drafter.open(shaper) for name, drafter in drafters.items()}
        state = RoundState(
            target=target,
            context=list(prompt),
            proposer=Proposer(
                sessions,
                self._planner.open(asked.draft_tokens if asked.speculate else 0),
                target.vocabulary_size,
                grammar,
                self._planner.pass_s,
            ),
            rule=rule_for(shaper),
            ending=answer,
            grammar=grammar if drafters and not params.judges_all_tokens else None,
            explains=asked.explain,
        )
        return Session(state, answer, self._sequence, self._planner.observe_pass)
