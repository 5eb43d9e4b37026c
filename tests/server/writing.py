"""A language model that answers every conversation with the same text, byte by byte, so that tests know each token."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
from tests.scripted import OracleDrafter
from tests.text.vocabularies import byte_level

from borrador.draft.protocol import Drafter
from borrador.engine.llm import LLM
from borrador.models.scripted import ScriptedModel, ScriptedTarget
from borrador.models.target import Rows
from borrador.text.chat_template import ChatTemplate
from borrador.text.tokenizer import Tokenizer
from borrador.types import Float32Array

TEMPLATE = (
    "{% for tool in tools or [] %}{{ tool.function.name }} <tool_call>;{% endfor %}"
    "{% for message in messages %}{{ message.role }}: {{ message.content }}"
    "{% for call in message.tool_calls or [] %}{{ call.function | tojson }}{% endfor %}"
    "{{ '\n' }}{% endfor %}<|im_start|>"
)
START, END = 257, 258
VOCABULARY = 260


class WritingModel(ScriptedModel):
    """Writes its answer behind `<|im_start|>`, then ends.

    Args:
        answer: what it writes.
        pass_s: seconds that a pass over one of its sequences takes at least.
    """

    def __init__(self, answer: bytes, pass_s: float = 0.0) -> None:
        super().__init__(VOCABULARY)
        self.answer = answer
        self.pass_s = pass_s

    def open(self, context_length: int) -> SlowTarget:
        return SlowTarget(self, context_length)

    def _compute(self, prefix: tuple[int, ...]) -> Float32Array:
        written = written_of(prefix)
        logits = np.linspace(-3.0, -2.0, VOCABULARY).astype(np.float32)
        logits[self.answer[written] if written < len(self.answer) else END] = 60.0
        return logits


class SlowTarget(ScriptedTarget):
    """A sequence on a `WritingModel`."""

    def __init__(self, model: WritingModel, context_length: int) -> None:
        super().__init__(model, context_length)
        self._pass_s = model.pass_s

    def forward(self, rows: Rows) -> Float32Array:
        time.sleep(self._pass_s)
        return super().forward(rows)


def written_of(context: Sequence[int]) -> int:
    """How many tokens of the answer a context holds."""
    return next((back for back, token in enumerate(reversed(context)) if token == START), len(context))


def oracle(answer: bytes, right: int = 3, pause_s: float = 0.0) -> OracleDrafter:
    """A drafter that knows the answer, but is wrong about every token after so many, and takes its time."""

    def propose(context: Sequence[int]) -> Sequence[int]:
        time.sleep(pause_s)
        written = written_of(context)
        return [*answer[written : written + right], 0, 0]

    return OracleDrafter(propose)


def writing_llm(answer: str | bytes, *drafters: Drafter, context_length: int = 4096, pass_s: float = 0.0) -> LLM:
    """An LLM with such a model and these drafters, five tokens a round."""
    model = WritingModel(answer.encode() if isinstance(answer, str) else answer, pass_s)
    tokenizer, template = Tokenizer.from_metadata(byte_level(pairs=[])), ChatTemplate(TEMPLATE)
    return LLM(model, tokenizer, template, drafters, context_length=context_length, draft_tokens=5)
