"""From what a user gave to a grammar of the llguidance library, which says whether it can be enforced."""

from __future__ import annotations

from borrador.errors import UsageError
from borrador.grammar.stack import with_deep_stack
from borrador.types import SamplingParams

# Separators as `json.dumps` writes them. Without a choice of white space the keys of an object are certain, and no
# model can lose itself in blank lines. A schema may ask for another layout under "x-guidance".
_JSON_LAYOUT = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}

_HINTS = {
    "json_schema": "See docs/structured-output.md for what can be enforced.",
    "regex": "Look-around, back-references and \\b cannot be enforced.",
    "grammar": "Write it in Lark's syntax, with a rule named start.",
}


def source_of(params: SamplingParams) -> tuple[str, str] | None:
    """The option that gives the shape of the answer, and the grammar it stands for; None where all text is allowed.

    Raises:
        UsageError: it cannot be enforced.
    """
    if not params.structured:
        return None
    from llguidance import LLMatcher

    if params.json_schema is not None:
        name, grammar = "json_schema", _from_schema(str(params.json_schema))
    elif params.regex is not None:
        name, grammar = "regex", LLMatcher.grammar_from_regex(params.regex)
    else:
        name, grammar = "grammar", LLMatcher.grammar_from_lark(params.grammar or "")
    refused, messages = with_deep_stack(lambda: LLMatcher.validate_grammar_with_warnings(grammar))
    if refused:
        raise not_enforceable(name, messages[0])
    return name, grammar


def not_enforceable(name: str, message: str) -> UsageError:
    """The error for an option whose grammar the library refuses."""
    return UsageError(f"{name} cannot be enforced: {_reason(message)}", _HINTS[name])


def _from_schema(text: str) -> str:
    from llguidance import LLMatcher

    try:
        return LLMatcher.grammar_from_json_schema(text, defaults=_JSON_LAYOUT)  # type: ignore[arg-type]
    except ValueError as error:
        raise not_enforceable("json_schema", str(error)) from None


def _reason(message: str) -> str:
    """One line of a message that may draw the place of the mistake below it."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    if not lines or lines[0].startswith("NoExtension"):
        return "no text fits it"
    named = (line.removeprefix("error:").strip() for line in lines if line.startswith("error:"))
    return next(named, lines[0])[:300]
