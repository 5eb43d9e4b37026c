"""Messages of a request as chat templates expect them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from borrador.server.errors import refusal
from borrador.server.schemas_chat import AssistantMessage, Content, Message, ToolCall, ToolMessage


def as_turns(messages: Sequence[Message]) -> list[Mapping[str, object]]:
    """The turns of a conversation; parts of a message are joined. Raises ApiError where a call is not one."""
    return [_as_turn(message, f"messages[{index}]") for index, message in enumerate(messages)]


def _as_turn(message: Message, path: str) -> dict[str, Any]:
    turn: dict[str, Any] = {"role": message.role, "content": _text(message.content)}
    if isinstance(message, ToolMessage):
        named = {} if message.name is None else {"name": message.name}
        return {**turn, "tool_call_id": message.tool_call_id, **named}
    if isinstance(message, AssistantMessage):
        if message.content is None and message.tool_calls is None:
            raise refusal(f"{path}.content must be given where there are no tool_calls.", f"{path}.content")
        if message.tool_calls is not None:
            turn["tool_calls"] = [
                _as_call(call, f"{path}.tool_calls[{i}]") for i, call in enumerate(message.tool_calls)
            ]
    return turn


def _as_call(call: ToolCall, path: str) -> dict[str, Any]:
    """A call whose arguments are an object, so that a template writes them as it writes JSON."""
    try:
        arguments = json.loads(call.function.arguments)
    except (ValueError, RecursionError):
        arguments = None
    if not isinstance(arguments, dict):
        rule = f"{path}.function.arguments must be a JSON object, got {call.function.arguments[:60]!r}."
        raise refusal(rule, f"{path}.function.arguments", "invalid_value")
    return {"id": call.id, "type": "function", "function": {"name": call.function.name, "arguments": arguments}}


def _text(content: Content | None) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    return "".join([part.text for part in content])
