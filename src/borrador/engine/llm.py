"""The library's public class: generate and stream answers. `borrador.engine.loading` builds it from files."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from types import TracebackType
from typing import overload

from borrador.config import DEFAULT_CONTEXT
from borrador.draft.protocol import Drafter, forget_texts
from borrador.engine.batch import Batch
from borrador.engine.cache_room import limited_caches
from borrador.engine.line import Request
from borrador.engine.planner import Planner
from borrador.engine.profile import Profile
from borrador.engine.prompts import DEFAULT_CONCURRENT, MOST_CONCURRENT, ManyParams, Prompt, pair_up
from borrador.engine.reading import LONGEST_S
from borrador.engine.requests import ChatRenderer, Drafting, Requests
from borrador.engine.stream import AnswerStream, BatchStream, collect, completion_of, named
from borrador.engine.turns import Turns
from borrador.errors import BorradorError
from borrador.models.prefix import SequencePool
from borrador.models.target import Model
from borrador.params import MAX_COMPLETIONS
from borrador.text.tokenizer import Tokenizer
from borrador.types import Completion, SamplingParams
from borrador.values import integer


class LLM:
    """A target model with its drafters. Calls from several threads run one after another.

    A prompt is either text, which is continued as it stands, or a list of messages, to which the chat template is
    applied. Control tokens spelt out in a text are control tokens.

    Args:
        model: the target; closed with the LLM.
        tokenizer: of the target.
        template: applied to messages.
        drafters: in order of preference; closed with the LLM.
        context_length: the maximum of prompt and answer together, in tokens.
        draft_tokens: tokens drafted each round; None lets costs decide, which are then measured here.
        profile: where measurements and what was learnt are saved for the next start; None saves nothing.
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
        self._sequences = SequencePool(lambda: model.open(context_length))
        self._sequence = self._sequences.take(())  # the one of answers that are written alone
        self._sequences.give_back(self._sequence)
        target = self._sequence.target
        self._planner = Planner(target, self._drafters, draft_tokens=draft_tokens, profile=profile)
        self._requests = Requests(target, tokenizer, template, self._drafters, self._planner)
        self._turns = Turns()

    @property
    def context_length(self) -> int:
        """The maximum of prompt and answer together, in tokens."""
        return self._sequence.target.context_length

    @property
    def model(self) -> Model:
        """The target."""
        return self._model

    @property
    def planner(self) -> Planner:
        """What is known of costs and drafters."""
        return self._planner

    @property
    def tokenizer(self) -> Tokenizer:
        """The target's tokenizer."""
        return self._tokenizer

    @property
    def template(self) -> ChatRenderer:
        """Makes a prompt out of messages."""
        return self._template

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
            draft_tokens: tokens drafted each round of this answer, from 0 to 64; None keeps the setting of the LLM.
            explain: record in each round why it drafted what it did.

        Raises:
            ContextLengthError: the prompt leaves no room for an answer.
            UsageError: the prompt is empty or not valid, the parameters do not fit the model's vocabulary, the shape
                asked for cannot be enforced, the LLM is closed, or (at the first event) this thread has not finished or
                closed its last answer.
        """
        self._turns.require_open()
        request = self._requests.prepare(prompt, params, Drafting(speculate, draft_tokens, explain))
        return AnswerStream(self._turns.taken, lambda: request.open(self._sequence))

    def stream_many(
        self,
        prompts: Sequence[Prompt],
        params: ManyParams = None,
        *,
        concurrent: int = DEFAULT_CONCURRENT,
        speculate: bool = True,
        draft_tokens: int | None = None,
    ) -> BatchStream:
        """Write answers to several prompts together, event by event. One pass of the model serves all of them.

        Each answer is the one that its prompt gets alone. A prompt that fails on the way does not affect the others:
        its error is raised once they are finished.

        Args:
            prompts: texts or conversations.
            params: for all of them, or a list with one for each.
            concurrent: how many answers are written at the same time, from 1 to 256; each has a cache of its own. The
                others wait for their turn.
            speculate: as for `stream`.
            draft_tokens: as for `stream`.

        Raises:
            ContextLengthError: a prompt leaves no room for an answer.
            UsageError: as for `stream`, with the index of the prompt; or the lists differ in length.
        """
        self._turns.require_open()
        limit, drafting = integer("concurrent", concurrent, 1, MOST_CONCURRENT), Drafting(speculate, draft_tokens)
        requests: list[Request] = []
        for index, (prompt, of_prompt) in enumerate(pair_up(prompts, params)):
            try:
                requests.append(self._requests.prepare(prompt, of_prompt, drafting))
            except BorradorError as error:
                raise named(error, f"prompt {index}") from error
        return self._write_together(requests, limit, "prompt")

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
            n: write this many answers, at most 128, and return them as a list. The prompt is evaluated once, and the
                answers are written together. Answer i, counted from 0, is the one that seed + i (modulo 2^64) gives on
                its own; without a seed, each is a fresh draw.
        """
        if n is None:
            with self.stream(prompt, params, speculate=speculate, draft_tokens=draft_tokens) as stream:
                return completion_of(list(stream), params, stream.stats)
        self._turns.require_open()
        drafting = Drafting(speculate, draft_tokens)
        count, params = integer("n", n, 1, MAX_COMPLETIONS), self._requests.checked(params)
        every = [params.for_completion(index) for index in range(count)]
        requests = [self._requests.prepare(prompt, of_one, drafting) for of_one in every]
        return collect(self._write_together(requests, DEFAULT_CONCURRENT, "answer"), every)

    def generate_many(
        self,
        prompts: Sequence[Prompt],
        params: ManyParams = None,
        *,
        concurrent: int = DEFAULT_CONCURRENT,
        speculate: bool = True,
        draft_tokens: int | None = None,
    ) -> list[Completion]:
        """Write whole answers to several prompts together, in the order of the prompts. Arguments and errors as for
        `stream_many`."""
        paired = pair_up(prompts, params)
        stream = self.stream_many(
            prompts, params, concurrent=concurrent, speculate=speculate, draft_tokens=draft_tokens
        )
        return collect(stream, [of_prompt for _, of_prompt in paired])

    def tokenize(self, prompt: Prompt) -> list[int]:
        """The token ids that the model sees for a prompt.

        Raises:
            UsageError: the prompt is empty, or not valid.
        """
        return self._requests.tokenize(prompt)

    def token_text(self, token_id: int) -> str:
        """A token for people to read. Raises UsageError for an id that the model does not have."""
        return self._tokenizer.token_text(integer("token_id", token_id, 0, self._tokenizer.vocabulary_size - 1))

    def prepare(self, prompt: Prompt, params: SamplingParams | None, drafting: Drafting) -> Request:
        """A request for `serve`. May be called from any thread; errors as for `stream`."""
        return self._requests.prepare(prompt, params, drafting)

    @contextmanager
    def serve(self, concurrent: int, cache_bytes: int | None = None) -> Iterator[Batch]:
        """Write answers by the batch that this gives, once those of other threads are finished.

        Until the context is left no other answer can be written, and the LLM cannot be closed.

        Args:
            concurrent: the most answers written at a time.
            cache_bytes: of keys and values of the target, draft models' come on top; None shares half of what is free.

        Raises:
            UsageError: the LLM is closed or serves already, or this thread has not finished its last answer.
        """
        with (
            self._turns.served(),
            closing(self._batch(concurrent, spare=concurrent, longest_s=LONGEST_S)) as batch,
            limited_caches(self._model, self._drafters.values(), cache_bytes, self.context_length),
        ):
            yield batch

    def forget_texts(self) -> None:
        """Let no cache hold anything of earlier texts. Raises UsageError as `serve`."""
        with self._turns.served():
            self._sequences.forget()
            forget_texts(self._drafters.values())

    def remember(self) -> None:
        """Keep what was learnt of costs and drafters for the next start, if a minute has gone by."""
        self._planner.save(now=False)

    def close(self) -> None:
        """Free models and caches; answers that this thread left unfinished are cancelled. Safe to call twice.

        Raises:
            UsageError: the LLM serves a scheduler.
        """
        with self._turns.last() as is_last, ExitStack() as closing_parts:
            if not is_last:
                return
            self._planner.save()
            closing_parts.callback(self._model.close)
            closing_parts.callback(self._sequences.close)
            for drafter in self._drafters.values():
                closing_parts.callback(drafter.close)

    def __enter__(self) -> LLM:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _write_together(self, requests: Sequence[Request], limit: int, noun: str) -> BatchStream:
        return BatchStream(self._turns.taken, self._batch(limit), requests, noun)

    def _batch(self, limit: int, spare: int = 0, longest_s: float = math.inf) -> Batch:
        self._sequences.most = limit + spare
        costs = self._planner
        return Batch(self._model, self._sequences, limit, costs.observe_pass, costs.pass_s, longest_s=longest_s)
