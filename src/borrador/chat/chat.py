"""A chat: asks, keeps what was answered, and counts."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace

from borrador.chat.backend import Backend, Figures, Reply
from borrador.chat.conversation import Conversation, Exchange
from borrador.chat.screen import Screen
from borrador.chat.settings import Settings
from borrador.errors import BorradorError, ContextLengthError, UsageError
from borrador.values import is_unicode

FULL_HINT = "Nothing was dropped: /save FILE keeps this conversation, /clear begins a new one."


class Chat:
    """Questions and answers with one model.

    Args:
        backend: writes the answers.
        screen: shows them.
        settings: to begin with.
        system: the system's message, to begin with.

    Attributes:
        conversation: so far.
        figures: of every answer so far, those that were replaced included.
        stopped: the last thing done was interrupted.
    """

    def __init__(self, backend: Backend, screen: Screen, settings: Settings, system: str | None = None) -> None:
        backend.require(settings)
        self.backend = backend
        self.screen = screen
        self._settings = settings
        self.conversation = Conversation(system)
        self.figures: list[Figures] = []
        self.stopped = False

    @property
    def settings(self) -> Settings:
        return self._settings

    @settings.setter
    def settings(self, settings: Settings) -> None:
        self.backend.require(settings)
        self._settings = settings

    def ask(self, question: str) -> None:
        """Write the answer to a question.

        Raises:
            ContextLengthError: the conversation leaves no room for an answer.
            BorradorError: the answer failed; what was written of it is kept.
        """
        if not is_unicode(question):
            raise UsageError("a question must be valid Unicode, and this one is not", "Check the terminal's encoding.")
        exchanges = self.conversation.exchanges
        exchange, failure = self._write(question, exchanges)
        if exchange is not None:
            exchanges.append(exchange)
        if failure is not None:
            raise failure

    def regenerate(self) -> None:
        """Write the last answer again; it stays as it was where nothing new is written.

        Raises:
            UsageError: there is none.
            BorradorError: as for `ask`.
        """
        exchanges = self.conversation.exchanges
        if not exchanges:
            raise UsageError("there is no answer yet to write again", "Ask something first.")
        if self.settings.sampling.greedy or self.settings.sampling.seed is not None:
            why = "at temperature 0" if self.settings.sampling.greedy else "with a seed"
            self.screen.note(f"{why} the same answer comes again; /set changes that")
        exchange, failure = self._write(exchanges[-1].question, exchanges[:-1])
        if exchange is not None:
            exchanges[-1] = exchange
        if failure is not None:
            raise failure

    def _write(self, question: str, before: Sequence[Exchange]) -> tuple[Exchange | None, BorradorError | None]:
        """The exchange with what was written, None where nothing was before it broke off; and why it failed."""
        texts: list[str] = []
        failure: BorradorError | None = None
        figures = Figures()
        try:
            messages = self.conversation.messages(question, before)
            with closing(self.backend.answer(messages, self.settings, origins=self.screen.coloured)) as reply:
                try:
                    self._follow(reply, texts)
                finally:
                    figures = reply.figures
        except KeyboardInterrupt:
            self.stopped = True
        except ContextLengthError as error:
            failure = ContextLengthError(str(error), FULL_HINT)
        except BorradorError as error:
            failure = error
        broken = self.stopped or failure is not None
        self._end(replace(figures, finish_reason="cancelled") if broken else figures)
        if broken and not texts:
            self.screen.note("nothing was written, so the question is not part of the conversation")
            return None, failure
        return Exchange(question, "".join(texts), stopped=broken), failure

    def _follow(self, reply: Reply, texts: list[str]) -> None:
        for spans in reply:
            texts.extend(span.text for span in spans)
            self.screen.write(spans)

    def _end(self, figures: Figures) -> None:
        """Tell how an answer ended."""
        self.screen.end_answer()
        if figures != Figures():
            self.figures.append(figures)
            self.screen.footer(figures)
            self._explain_cut(figures)

    def _explain_cut(self, figures: Figures) -> None:
        """An answer that did not come to its own end looks as if it had."""
        limit, used = self.backend.context_length, (figures.prompt_tokens or 0) + (figures.tokens or 0)
        if figures.finish_reason == "length" and limit is not None and used >= limit:
            self.screen.note(f"the context of {limit} tokens is full, and the answer was cut. {FULL_HINT}")
        elif figures.finish_reason == "length":
            most = self.settings.sampling.max_tokens
            self.screen.note(f"the answer was cut at {most} tokens; /set max_tokens {2 * most} lets the next be longer")
        elif figures.finish_reason == "timeout":
            self.screen.note("the server's time for one answer was over")
