"""How families of models write calls of tools. A new form is an entry of the table here."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Syntax:
    """A form of calls: JSON objects with the function's name and arguments, in this frame.

    Attributes:
        signs: what chat templates of such models hold, all of it.
        foreign: what they do not hold; it belongs to a form that is not JSON.
        opening: stands before calls. Where it is a control token it is no part of the text, and calls stand bare.
        closing: stands behind a call; empty where calls go on to the end of the answer.
        arguments: the key of the arguments.
        optional: keys that a call may have besides.
        is_list: several calls are a JSON list; else they follow each other.
    """

    signs: tuple[str, ...]
    foreign: str
    opening: str
    closing: str = ""
    arguments: str = "arguments"
    optional: frozenset[str] = frozenset()
    is_list: bool = False

    @property
    def head(self) -> re.Pattern[str]:
        """What stands before the arguments of a call, and between calls."""
        optional = "".join(rf'("{key}"\s*:\s*"\w*"\s*,\s*)?' for key in sorted(self.optional))
        name = r'"name"\s*:\s*"(?P<name>[\w.-]+)"\s*,\s*'
        return re.compile(rf'(\s*```json)?[\s,;\[\]}}]*\{{\s*{optional}{name}"{self.arguments}"\s*:\s*(?=\{{)')


HERMES = Syntax(signs=("<tool_call>",), foreign="<function=", opening="<tool_call>", closing="</tool_call>")
MISTRAL = Syntax(signs=("[TOOL_CALLS]",), foreign="[ARGS]", opening="[TOOL_CALLS]", is_list=True)
LLAMA = Syntax(
    signs=('{"name": ', '"parameters": '),
    foreign="<function=",
    opening="<|python_tag|>",
    arguments="parameters",
    optional=frozenset({"type"}),
)
SYNTAXES = (HERMES, MISTRAL, LLAMA)


def find_syntax(template: str) -> Syntax | None:
    """The form that a chat template shows; None where it shows none of them."""
    for syntax in SYNTAXES:
        if all(sign in template for sign in syntax.signs):
            return None if syntax.foreign in template else syntax
    return None
