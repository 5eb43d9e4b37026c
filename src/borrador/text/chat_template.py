"""Conversations to prompts: the chat template of the model's file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from borrador.errors import ModelError, UsageError
from borrador.text.messages import check_messages, check_tools
from borrador.text.tokenizer import Tokenizer
from borrador.text.vocabulary import DAMAGED
from borrador.types import Messages

CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)

MAX_TEMPLATE_CHARACTERS = 1 << 20
_SPARE_CHARACTERS = 1 << 20  # what a template may add of its own
_CONTENT_COPIES = 16
_SPARE_UNITS = 400_000  # about a fifth of a second
_UNITS_PER_TURN = 1000
_UNITS_PER_CHARACTER = 2
_COMPILED_WORDS = 30_000

Render = Callable[[dict[str, Any]], Iterator[str]]


class ChatTemplate:
    """A chat template. Build it once per model; safe to use from several threads.

    It is compiled when it is first used, so that a model whose template is broken can still continue text.

    Args:
        source: the template, in jinja2's language. It is not trusted.
        names: what else the template may refer to, such as `bos_token`.
        time_limit_s: the longest a compilation or a rendering may take.

    Raises:
        ModelError: the source is too long.
    """

    def __init__(self, source: str, names: Mapping[str, str] | None = None, *, time_limit_s: float = 5.0) -> None:
        if len(source) > MAX_TEMPLATE_CHARACTERS:
            raise ModelError(
                f"a chat template must have at most {MAX_TEMPLATE_CHARACTERS} characters, got {len(source)}", DAMAGED
            )
        self._source = source
        self._names = dict(names or {})
        self._time_limit_s = time_limit_s

    @classmethod
    def from_metadata(cls, metadata: Mapping[str, Any], tokenizer: Tokenizer) -> ChatTemplate:
        """The template of a GGUF file; ChatML where it has none.

        Raises:
            ModelError: it is not text, or too long.
        """
        source = metadata.get("tokenizer.chat_template", CHATML)
        if not isinstance(source, str):
            raise ModelError(f"tokenizer.chat_template must be text, got {type(source).__name__}", DAMAGED)
        special = {"bos_token": tokenizer.bos_id, "eos_token": tokenizer.eos_id}
        names = {name: "" if i is None else tokenizer.vocabulary[i] for name, i in special.items()}
        return cls(source, names)

    @property
    def source(self) -> str:
        return self._source

    def render(
        self,
        messages: Messages,
        add_generation_prompt: bool = True,
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
    ) -> str:
        """The prompt for a conversation; encode it with `specials=True`.

        Args:
            messages: the turns, at least one; see `borrador.text.messages`.
            add_generation_prompt: end with the beginning of the assistant's turn.
            tools: that the answer may call, each as a JSON object; a template may leave them out.

        Raises:
            UsageError: a message breaks a rule, or the template refuses the conversation.
            ModelError: it is not a template, or it fails, or tries to do what no template needs.
        """
        turns, offered = check_messages(messages), check_tools(tools)
        variables = {
            **self._names,
            "messages": turns,
            "add_generation_prompt": add_generation_prompt,
            "tools": offered,
            "documents": None,
        }
        return self._render(variables, _characters(turns, offered))

    @cached_property
    def _generate(self) -> Render:
        return _compile(self._source, self._time_limit_s)

    def _render(self, variables: dict[str, Any], content_characters: int) -> str:
        from borrador.text.metering import Budget, working_on
        from borrador.text.sandbox import RefusalError

        generate = self._generate
        limit = _SPARE_CHARACTERS + _CONTENT_COPIES * content_characters
        turns = len(variables["messages"]) + len(variables["tools"] or ())
        units = _SPARE_UNITS + _UNITS_PER_TURN * turns + _UNITS_PER_CHARACTER * content_characters
        try:
            with working_on(Budget(units, self._time_limit_s)):
                return _collect(generate(variables), limit)
        except RefusalError as refusal:
            raise UsageError(
                f"the model's chat template refuses the conversation: {_one_line(refusal)}", "Change the messages."
            ) from None
        except Exception as error:  # noqa: BLE001 - a template can raise anything
            raise ModelError(f"the model's chat template failed: {_one_line(error)}", "Use --raw for none.") from None


def _characters(turns: Sequence[Mapping[str, Any]], tools: Sequence[Any] | None) -> int:
    """About as many as there are to put into the prompt."""
    structured = [turn["tool_calls"] for turn in turns if "tool_calls" in turn] + list(tools or ())
    return sum(len(turn["content"]) for turn in turns) + sum(len(repr(value)) for value in structured)


def _compile(source: str, time_limit_s: float) -> Render:
    from borrador.text.metering import Budget, working_on
    from borrador.text.sandbox import ChatSandbox

    try:
        with working_on(Budget(_COMPILED_WORDS, time_limit_s)):
            return ChatSandbox().from_string(source).generate
    except Exception as error:  # noqa: BLE001 - beside jinja2's own errors, recursion and Python's compiler
        raise ModelError(f"the chat template cannot be read: {_one_line(error)}", "Use --raw for none.") from None


def _collect(pieces: Iterator[str], limit: int) -> str:
    texts, length = [], 0
    for piece in pieces:
        length += len(piece)
        if length > limit:
            raise ValueError(f"its text has more than {limit} characters")
        texts.append(piece)
    return "".join(texts)


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 200 else text[:200] + "…"
