"""The rules for messages of a conversation, and for the tools that an answer may call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from borrador.errors import UsageError

ROLES = ("system", "developer", "user", "assistant", "tool")

_MORE_KEYS = {"assistant": ("tool_calls",), "tool": ("tool_call_id", "name")}


def check_messages(messages: Any) -> list[dict[str, Any]]:
    """Copies of messages that keep the rules.

    Args:
        messages: the turns, at least one. Each has a role and a content; an assistant's may have `tool_calls`, of which
            each is {"function": {"name": text, "arguments": mapping}}, a tool's `tool_call_id` and `name`.

    Raises:
        UsageError: one breaks a rule; it names the rule and the message's number.
    """
    if not isinstance(messages, list | tuple):
        raise UsageError(f"messages must be a list, got {type(messages).__name__}", "Give a list of role and content.")
    if not messages:
        raise UsageError("messages must have at least one entry, got none", "Give a user's message.")
    return [_check_message(message, number) for number, message in enumerate(messages, start=1)]


def check_tools(tools: Any) -> list[Any] | None:
    """The tools an answer may call, None where there are none. Raises UsageError where they are no list of mappings."""
    if tools is None:
        return None
    if not isinstance(tools, list | tuple) or not all(isinstance(tool, Mapping) for tool in tools):
        raise UsageError(f"tools must be a list of mappings, got {tools!r:.80}", "Describe each by a JSON object.")
    return list(tools) or None


def _check_message(message: Any, number: int) -> dict[str, Any]:
    if not isinstance(message, Mapping):
        raise UsageError(f"message {number} must be a mapping, got {type(message).__name__}", "Give role and content.")
    role, content = message.get("role"), message.get("content")
    more = _MORE_KEYS.get(role, ()) if isinstance(role, str) else ()
    unknown = [key for key in message if key not in ("role", "content", *more)]
    if unknown:
        allowed = f" beside {' and '.join(more)}" if more else ""
        raise UsageError(
            f"message {number} must have role and content only{allowed}, got {unknown[0]!r:.60}",
            "Remove the other keys.",
        )
    if role not in ROLES:
        raise UsageError(f"message {number} must have a role of {', '.join(ROLES)}, got {role!r:.60}", "Correct it.")
    if not isinstance(content, str):
        raise UsageError(f"message {number} must have text as content, got {type(content).__name__}", "Give a string.")
    if "tool_calls" in message:
        _check_calls(message["tool_calls"], number)
    for key in ("tool_call_id", "name"):
        if not isinstance(message.get(key, ""), str):
            raise UsageError(f"message {number} must have text as {key}, got {message[key]!r:.60}", "Give a string.")
    return dict(message)


def _check_calls(calls: Any, number: int) -> None:
    is_list = isinstance(calls, Sequence) and not isinstance(calls, str | bytes)
    if not is_list or not all(_is_call(call) for call in calls):
        raise UsageError(
            f"message {number} must have a list of calls with a function's name and arguments as tool_calls,"
            f" got {calls!r:.80}",
            'Give [{"function": {"name": "f", "arguments": {}}}].',
        )


def _is_call(call: Any) -> bool:
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping):
        return False
    return isinstance(function.get("name"), str) and isinstance(function.get("arguments"), Mapping)
