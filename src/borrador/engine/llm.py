"""The library's face: load a model, generate, stream."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from borrador.config import DEFAULT_CONTEXT, EngineConfig
from borrador.draft.protocol import Drafter
from borrador.draft.registry import open_drafters
from borrador.engine.controller import Controller
from borrador.engine.costs import measure_costs
from borrador.engine.session import Session
from borrador.errors import ContextLengthError, UsageError
from borrador.models.prefix import CachedSequence
from borrador.models.target import Model
from borrador.types import Completion, GenerationEvent, GenerationStats, Message, SamplingParams

if TYPE_CHECKING:
    from borrador.text.chat_template import ChatTemplate
    from borrador.text.tokenizer import Tokenizer

Prompt = str | Sequence[Message]


def load(
    model: str | Path,
    draft: str | Sequence[str] = "auto",
    *,
    threads: int | None = None,
    context: int | None = None,
    draft_tokens: int | None = None,
) -> LLM:
    """Load a model and its drafters.

    Args:
        model: a catalogue name, `hf:OWNER/REPO/FILE.gguf`, or a path.
        draft: drafters, as `EngineConfig.draft`.
        threads: as `EngineConfig.threads`.
        context: as `EngineConfig.context`.
        draft_tokens: as `EngineConfig.draft_tokens`.

    Raises:
        UsageError: an option breaks its rule.
        ModelError: a model is missing, damaged or not supported, or the draft model's vocabulary differs.
        MemoryLimitError: the model does not fit into memory.
    """
    raise NotImplementedError


class AnswerStream(Iterator[GenerationEvent]):
    """The events of one answer, as they become certain. Closing it early cancels the answer cleanly.

    Use it as an iterator, and as a context manager when the loop may be left early.
    """

    def __next__(self) -> GenerationEvent:
        raise NotImplementedError

    @property
    def stats(self) -> GenerationStats:
        """What the answer cost so far."""
        raise NotImplementedError

    def close(self) -> None:
        """Stop writing. Safe to call twice."""


class LLM:
    """A target model with its drafters. Calls from several threads are served one after another.

    A prompt is either text, which is continued as it stands, or a list of messages, to which the model's chat
    template is applied.
    """

    def stream(
        self, prompt: Prompt, params: SamplingParams | None = None, *, speculate: bool = True
    ) -> AnswerStream: ...

    def generate(self, prompt: Prompt, params: SamplingParams | None = None, *, speculate: bool = True) -> Completion: ...

    def tokenize(self, prompt: Prompt) -> list[int]: ...

    def close(self) -> None: ...
