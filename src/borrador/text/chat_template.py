"""Conversations to prompts: the chat template of the model's file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from borrador.errors import ModelError, UsageError
from borrador.text.tokenizer import Tokenizer
from borrador.text.vocabulary import DAMAGED
from borrador.types import Messages

CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
ROLES = ("system", "developer", "user", "assistant", "tool")

MAX_TEMPLATE_CHARACTERS = 1 << 20
_SPARE_CHARACTERS = 1 << 20  # what a template may add of its own
_SPARE_STEPS = 10_000_000
_CONTENT_COPIES = 16
_STEPS_PER_CHARACTER = 64

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

    def render(self, messages: Messages, add_generation_prompt: bool = True) -> str:
        """The prompt for a conversation; encode it with `specials=True`.

        Args:
            messages: the turns, at least one, each with a role and a content and nothing else.
            add_generation_prompt: end with the beginning of the assistant's turn.

        Raises:
            UsageError: a message breaks a rule, or the template refuses the conversation.
            ModelError: it is not a template, or it fails, or tries to do what no template needs.
        """
        turns = [check_message(message, i) for i, message in enumerate(_check_list(messages), start=1)]
        variables = {
            **self._names,
            "messages": turns,
            "add_generation_prompt": add_generation_prompt,
            "tools": None,
            "documents": None,
        }
        return self._render(variables, sum(len(turn["content"]) for turn in turns))

    @cached_property
    def _generate(self) -> Render:
        return _compile(self._source, self._time_limit_s)

    def _render(self, variables: dict[str, Any], content_characters: int) -> str:
        from borrador.text.metering import Budget, working_on
        from borrador.text.sandbox import RefusalError

        generate = self._generate
        limit = _SPARE_CHARACTERS + _CONTENT_COPIES * content_characters
        steps = _SPARE_STEPS + _STEPS_PER_CHARACTER * content_characters
        try:
            with working_on(Budget(steps, self._time_limit_s)):
                return _collect(generate(variables), limit)
        except RefusalError as refusal:
            raise UsageError(
                f"the model's chat template refuses the conversation: {_one_line(refusal)}", "Change the messages."
            ) from None
        except Exception as error:  # noqa: BLE001 - a template can raise anything
            raise ModelError(f"the model's chat template failed: {_one_line(error)}", "Use --raw for none.") from None


def check_message(message: Any, number: int) -> dict[str, str]:
    """A copy of a message that keeps the rules. Raises UsageError naming the rule and the message's number."""
    if not isinstance(message, Mapping):
        raise UsageError(f"message {number} must be a mapping, got {type(message).__name__}", "Give role and content.")
    unknown = [key for key in message if key not in ("role", "content")]
    if unknown:
        raise UsageError(
            f"message {number} must have role and content only, got {unknown[0]!r:.60}", "Remove the other keys."
        )
    role, content = message.get("role"), message.get("content")
    if role not in ROLES:
        raise UsageError(f"message {number} must have a role of {', '.join(ROLES)}, got {role!r:.60}", "Correct it.")
    if not isinstance(content, str):
        raise UsageError(f"message {number} must have text as content, got {type(content).__name__}", "Give a string.")
    return {"role": role, "content": content}


def _check_list(messages: Any) -> Sequence[Any]:
    if not isinstance(messages, list | tuple):
        raise UsageError(f"messages must be a list, got {type(messages).__name__}", "Give a list of role and content.")
    if not messages:
        raise UsageError("messages must have at least one entry, got none", "Give a user's message.")
    return messages


def _compile(source: str, time_limit_s: float) -> Render:
    from borrador.text.metering import Budget, working_on
    from borrador.text.sandbox import ChatSandbox

    try:
        with working_on(Budget(_SPARE_STEPS, time_limit_s)):
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
