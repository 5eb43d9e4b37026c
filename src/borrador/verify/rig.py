"""Models loaded with one number of threads, and the ways to write an answer with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from borrador.draft.protocol import Drafter
from borrador.engine.llm import LLM
from borrador.engine.loading import Parts
from borrador.types import FinishReason, GenerationStats, Message, SamplingParams
from borrador.verify.rehearsal import RehearsedDrafter
from borrador.verify.watch import Choice, WatchedModel

REHEARSED_CHAIN, REHEARSED_TREE = REHEARSED = ("rehearsed chain", "rehearsed tree")


@dataclass(frozen=True, slots=True)
class Setup:
    """A way to draft: a drafter, or all of them (None), and the draft length, or the one that pays (None)."""

    drafter: str | None
    draft_tokens: int | None

    def describe(self) -> str:
        length = "lengths that pay" if self.draft_tokens is None else f"draft length {self.draft_tokens}"
        return f"{self.drafter or 'all drafters'}, {length}"


@dataclass(frozen=True, slots=True)
class Written:
    """An answer, and what it was chosen from.

    Attributes:
        prompt: its tokens.
        tokens: of the answer.
        choices: one for each of them, and for the token that ended the answer.
    """

    prompt: tuple[int, ...]
    choices: tuple[Choice, ...]
    tokens: tuple[int, ...]
    text: str
    finish_reason: FinishReason
    stats: GenerationStats


class Rig:
    """Writes the same answers in different ways. The parts stay with their owner.

    Args:
        parts: the target and its drafters.
        threads: that they were loaded with.
    """

    def __init__(self, parts: Parts, threads: int) -> None:
        self.parts = parts
        self.threads = threads
        self._watched: dict[Setup | None, tuple[WatchedModel, LLM]] = {}
        self._vocabulary_size = parts.model.open(1).vocabulary_size
        self._rehearsed = {
            name: RehearsedDrafter(name, self._vocabulary_size, branches=name == REHEARSED_TREE) for name in REHEARSED
        }

    @property
    def vocabulary_size(self) -> int:
        return self._vocabulary_size

    def token_text(self, token: int) -> str:
        return self.parts.tokenizer.token_text(token)

    def tokenize(self, prompt: str) -> list[int]:
        """The tokens of the prompt as the user's first message."""
        return self._llm(None)[1].tokenize(_messages(prompt))

    def write(
        self, prompt: str, params: SamplingParams, setup: Setup | None = None, plain: Written | None = None
    ) -> Written:
        """Write an answer plainly, or as `setup` says.

        Args:
            prompt: the user's first message.
            params: greedy or seeded.
            setup: how to draft; None decodes plainly.
            plain: what plain decoding wrote, which rehearsed drafters propose.
        """
        watched, llm = self._llm(setup)
        tokens = self.tokenize(prompt)
        if setup is not None and setup.drafter in self._rehearsed and plain is not None:
            self._rehearsed[setup.drafter].context = [*tokens, *plain.tokens]
        answer = llm.generate(_messages(prompt), params)
        ended = answer.finish_reason == "stop"
        end_ids = self.parts.tokenizer.eog_ids if ended else ()
        choices = watched.choices(len(tokens), answer.token_ids, end_ids)
        return Written(tuple(tokens), choices, answer.token_ids, answer.text, answer.finish_reason, answer.stats)

    def _llm(self, setup: Setup | None) -> tuple[WatchedModel, LLM]:
        if setup not in self._watched:
            watched = WatchedModel(self.parts.model)
            llm = LLM(
                watched,
                self.parts.tokenizer,
                self.parts.template,
                self._drafters(setup),
                context_length=self.parts.context_length,
                draft_tokens=None if setup is None else setup.draft_tokens,
            )
            self._watched[setup] = watched, llm
        return self._watched[setup]

    def _drafters(self, setup: Setup | None) -> Sequence[Drafter]:
        if setup is None:
            return ()
        if setup.drafter in self._rehearsed:
            return (self._rehearsed[setup.drafter],)
        return [drafter for drafter in self.parts.drafters if setup.drafter in (None, drafter.name)]


def _messages(prompt: str) -> Sequence[Message]:
    return [{"role": "user", "content": prompt}]
