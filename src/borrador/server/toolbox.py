"""The tools of a request: what the model is told of them, and what it must write to call them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from borrador.engine.llm import LLM
from borrador.server.config import ServerConfig
from borrador.server.errors import refusal
from borrador.server.sampling import check_schema_limits
from borrador.server.schemas_chat import ChatRequest, NamedTool, Tool
from borrador.server.tool_syntax import HERMES, Syntax, find_syntax

_MOST_CALLS = 8  # that must be made at once; a model may not find an end
_LAYOUT = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}


class Toolbox:
    """Checks what a request says of tools.

    Args:
        request: from a client.
        llm: whose chat template must know tools, if there are any.
        config: the server's limits.

    Attributes:
        offered: tools for the chat template; None where none may be called.
        names: of those that may be called.
        syntax: how the model writes calls.

    Raises:
        ApiError: a rule is broken, or the model does not know tools.
    """

    def __init__(self, request: ChatRequest, llm: LLM, config: ServerConfig) -> None:
        tools = request.tools or []
        self._choice = request.tool_choice or ("auto" if tools else "none")
        self._at_most_one = request.parallel_tool_calls is False or isinstance(self._choice, NamedTool)
        self._tools = [] if self._choice == "none" else tools
        self._check(tools, config)
        self.syntax = _syntax_of(llm) if self._tools else HERMES
        chosen = self._choice.function.name if isinstance(self._choice, NamedTool) else None
        self._callable = [tool for tool in self._tools if chosen in (None, tool.function.name)]
        self.names = frozenset(tool.function.name for tool in self._callable)
        self.offered = [tool.model_dump(exclude_none=True) for tool in self._tools] or None

    def shape(self) -> dict[str, str]:
        """The parameter that holds the answer to the rules; none where the model is free to write what it wants."""
        is_free = self._choice == "auto" and not self._at_most_one
        if not self._tools or (is_free and not any(tool.function.strict for tool in self._tools)):
            return {}
        most = 1 if self._at_most_one else _MOST_CALLS
        return {"grammar": grammar_of(self._callable, self.syntax, must=self._choice != "auto", most=most)}

    def _check(self, tools: Sequence[Tool], config: ServerConfig) -> None:
        names = [tool.function.name for tool in tools]
        if self._choice != "none" and not tools:
            raise refusal("tool_choice must come with tools, there are none.", "tool_choice", "invalid_value")
        if len(set(names)) < len(names):
            raise refusal("tools must have different names, two have the same.", "tools", "invalid_value")
        if isinstance(self._choice, NamedTool) and self._choice.function.name not in names:
            rule = f"tool_choice must name one of tools, got {self._choice.function.name!r}."
            raise refusal(rule, "tool_choice", "invalid_value")
        for index, tool in enumerate(tools):
            check_schema_limits(tool.function.parameters or {}, config, f"tools[{index}].function.parameters")


def grammar_of(tools: Sequence[Tool], syntax: Syntax, *, must: bool, most: int) -> str:
    """The grammar of an answer, in Lark's syntax.

    Args:
        tools: that may be called.
        syntax: of calls; those without a closing stand bare, since their opening is no text.
        must: there is at least one call, and nothing else; otherwise there may be text before calls.
        most: how many calls there may be.
    """
    content = f"content: %json {json.dumps(_schema_of(tools, syntax.arguments))}"
    lines = _framed(syntax, most, must=must) if syntax.closing else _bare(syntax, most, must=must)
    return "\n".join([*lines, content])


def _framed(syntax: Syntax, most: int, *, must: bool) -> list[str]:
    more = f'("\\n{syntax.opening}" call){{0,{most - 1}}}' if most > 1 else ""
    call = f'call: "\\n" content "\\n{syntax.closing}"'
    if must:
        return [f'start: "{syntax.opening}" call {more}', call]
    # A lazy lexeme ends where it first can, whatever else may go on.
    lazy = f"until_call[lazy]: /(?s:.*){re.escape(syntax.opening)}/"
    return [f"start: text | until_call call {more}", call, "text: /(?s:.*)/", lazy]


def _bare(syntax: Syntax, most: int, *, must: bool) -> list[str]:
    more = f'(", " content){{0,{most - 1}}}' if most > 1 else ""
    calls = f'calls: "[" content {more} "]"' if syntax.is_list else "calls: content"
    text = [] if must else ["text: /([^\\[{](?s:.*))?/"]
    return ["start: calls" if must else "start: text | calls", calls, *text]


def _schema_of(tools: Sequence[Tool], key: str) -> dict[str, Any]:
    """Of the JSON that calls one of them."""
    calls = [
        {
            "type": "object",
            "properties": {"name": {"const": tool.function.name}, key: {"$ref": f"#/$defs/{index}"}},
            "required": ["name", key],
            "additionalProperties": False,
        }
        for index, tool in enumerate(tools)
    ]
    arguments = {
        str(index): _rebased({"type": "object", **(tool.function.parameters or {})}, f"#/$defs/{index}")
        for index, tool in enumerate(tools)
    }
    return {"x-guidance": _LAYOUT, "anyOf": calls, "$defs": arguments}


def _rebased(value: Any, base: str) -> Any:
    """A schema that has become part of another, with its references to itself as they must be there."""
    if isinstance(value, list):
        return [_rebased(item, base) for item in value]
    if not isinstance(value, Mapping):
        return value
    return {
        key: base + item[1:]
        if key == "$ref" and isinstance(item, str) and item.startswith("#")
        else _rebased(item, base)
        for key, item in value.items()
    }


def _syntax_of(llm: LLM) -> Syntax:
    """How the model writes calls. Raises ApiError where it knows no tools, or has a form that is not read here."""
    source = llm.template.source
    if "tools" not in source:
        raise refusal("tools must be empty: the model's chat template knows none.", "tools", "unsupported_parameter")
    syntax = find_syntax(source)
    if syntax is None or (syntax.closing and llm.tokenizer.control_id(syntax.opening) is not None):
        rule = (
            "tools must be empty: the model does not write calls as Hermes, Mistral or Llama 3 do, which are read here."
        )
        raise refusal(rule, "tools", "unsupported_parameter")
    return syntax
