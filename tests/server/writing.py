"""A language model that answers every conversation with the same text, byte by byte, so that tests know each token."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from tests.scripted import OracleDrafter
from tests.text.vocabularies import byte_level

from borrador.draft.protocol import Drafter
from borrador.engine.llm import LLM
from borrador.models.scripted import ScriptedModel
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
    """

    def __init__(self, answer: bytes) -> None:
        super().__init__(VOCABULARY)
        self.answer = answer

    def _compute(self, prefix: tuple[int, ...]) -> Float32Array:
        written = written_of(prefix)
        logits = np.linspace(-3.0, -2.0, VOCABULARY).astype(np.float32)
        logits[self.answer[written] if written < len(self.answer) else END] = 10.0
        return logits


def written_of(context: Sequence[int]) -> int:
    """How many tokens of the answer a context holds."""
    return next((back for back, token in enumerate(reversed(context)) if token == START), len(context))


def oracle(answer: bytes, right: int = 3) -> OracleDrafter:
    """A drafter that knows the answer, but is wrong about every token after so many."""

    def propose(context: Sequence[int]) -> Sequence[int]:
        written = written_of(context)
        return [*answer[written : written + right], 0, 0]

    return OracleDrafter(propose)


def writing_llm(answer: str | bytes, *drafters: Drafter, context_length: int = 4096) -> LLM:
    """An LLM with such a model and these drafters, five tokens a round."""
    data = answer.encode() if isinstance(answer, str) else answer
    tokenizer = Tokenizer.from_metadata(byte_level(pairs=[]))
    template = ChatTemplate(TEMPLATE)
    return LLM(WritingModel(data), tokenizer, template, drafters, context_length=context_length, draft_tokens=5)
