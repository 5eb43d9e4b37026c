"""Small parts for tests of the engine: a tokenizer of letters, drafters that are right or wrong on purpose."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from borrador.draft.protocol import Drafter, GoOn, Price, always
from borrador.engine.llm import LLM
from borrador.models.scripted import ScriptedModel
from borrador.sampling.shaping import Shaper
from borrador.text.tokenizer import Tokenizer
from borrador.types import Draft, Messages

LETTERS = "abcdefghijklmno"
END = len(LETTERS)
VOCABULARY = len(LETTERS) + 1


def letter_tokenizer() -> Tokenizer:
    """One token per letter a to o, and token 15 ends the answer."""
    return Tokenizer.from_metadata(
        {
            "tokenizer.ggml.model": "gpt2",
            "tokenizer.ggml.pre": "default",
            "tokenizer.ggml.tokens": [*LETTERS, "<|im_end|>"],
            "tokenizer.ggml.token_type": [1] * len(LETTERS) + [3],
            "tokenizer.ggml.merges": [],
            "tokenizer.ggml.eos_token_id": END,
        }
    )


def ids(text: str) -> list[int]:
    return [LETTERS.index(letter) if letter in LETTERS else END for letter in text]


class JoinedMessages:
    """A chat template that joins what was said, and knows no tools."""

    source = ""

    def render(self, messages: Messages, *, tools: Sequence[Mapping[str, Any]] | None = None) -> str:
        return "".join(str(message["content"]) for message in messages)


class OracleDrafter:
    """Proposes what a function of the context says, and remembers what it was told.

    Args:
        continuation: gives the tokens to propose after a context.
        obedient: False proposes all of them, whatever the budget.
    """

    def __init__(
        self, continuation: Callable[[Sequence[int]], Sequence[int]], *, name: str = "oracle", obedient: bool = True
    ) -> None:
        self.name = name
        self.continuation = continuation
        self.obedient = obedient
        self.observed: list[tuple[int, ...]] = []
        self.open_sessions = 0

    def open(self, shaper: Shaper, /) -> OracleDrafter:
        self.open_sessions += 1
        return self

    def price(self) -> Price:
        return Price()

    def unread(self, context: Sequence[int]) -> int:
        return 0

    def propose(self, context: Sequence[int], budget: int, go_on: GoOn = always) -> Draft:
        tokens = tuple(self.continuation(context))
        return Draft(tokens=tokens[:budget] if self.obedient else tokens, drafter=self.name)

    def observe(self, committed: Sequence[int]) -> None:
        self.observed.append(tuple(committed))

    def close(self) -> None:
        self.open_sessions -= 1


def knows(answer: Sequence[int], prompt_length: int) -> Callable[[Sequence[int]], Sequence[int]]:
    """A continuation that knows the answer."""
    return lambda context: answer[len(context) - prompt_length :]


def scripted_llm(
    model: ScriptedModel, *drafters: Drafter, context_length: int = 256, draft_tokens: int | None = 4
) -> LLM:
    return LLM(
        model,
        letter_tokenizer(),
        JoinedMessages(),
        drafters,
        context_length=context_length,
        draft_tokens=draft_tokens,
    )


def scripted_answer(prompt: str, answer: str) -> ScriptedModel:
    """A model that answers the prompt with these letters, then (`!`) ends."""
    return ScriptedModel(VOCABULARY, script=ids(prompt + answer))
