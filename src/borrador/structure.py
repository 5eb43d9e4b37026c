"""What a user may give as an answer's shape: a JSON schema, a regular expression or a grammar, checked and bounded.

Whether it can be enforced is for `borrador.grammar.source` to say.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any, NoReturn

from borrador.errors import UsageError

MAX_CHARACTERS = 1 << 18
MAX_DEPTH = 64

_GIVE_SCHEMA = 'Give a JSON object, such as {"type": "object"}.'


def check_schema(value: Any) -> str:
    """A JSON schema, given as a mapping or as JSON, in one line of JSON whose keys keep their order.

    Raises:
        UsageError: it is not a JSON object, repeats a key, or is too long or too deep.
    """
    if isinstance(value, str):
        check_text("json_schema", value)
        value = _parse(value)
    if not isinstance(value, Mapping):
        raise UsageError(f"json_schema must be a JSON object, got {value!r:.60}", _GIVE_SCHEMA)
    try:
        _check_depth(value)
        text = json.dumps(value, allow_nan=False)
    except (TypeError, ValueError) as error:
        _refuse(error)
    _check_length("json_schema", text)
    return text


def check_text(name: str, value: Any) -> str:
    """A regular expression or grammar.

    Raises:
        UsageError: it is empty, too long, or not text.
    """
    if not isinstance(value, str) or not value.strip():
        raise UsageError(f"{name} must be text that is not empty, got {value!r:.60}", "Give some, or leave it out.")
    _check_length(name, value)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{name} must be valid Unicode, it holds a lone surrogate", "Give it as UTF-8.") from None
    return value


def _check_length(name: str, text: str) -> None:
    if len(text) > MAX_CHARACTERS:
        raise UsageError(f"{name} must have at most {MAX_CHARACTERS} characters, it has {len(text)}", "Simplify it.")


def _check_depth(value: Any) -> None:
    """Measured without recursion, for values as deep as anyone may send."""
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [child for parent in level for child in _children(parent)]
        if not level:
            return
        if len(level) > MAX_CHARACTERS:
            raise UsageError(f"json_schema must have at most {MAX_CHARACTERS} values, it has more", "Simplify it.")
    raise UsageError(f"json_schema must be nested at most {MAX_DEPTH} deep, it is deeper", "Name its parts in $defs.")


def _children(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return list(value.values())
    return list(value) if isinstance(value, list | tuple) else []


def _parse(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_unique_keys, parse_constant=_no_constant)
    except RecursionError:
        raise UsageError(f"json_schema must be nested at most {MAX_DEPTH} deep, it is deeper", "Simplify it.") from None
    except ValueError as error:
        _refuse(error)


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = dict(pairs)
    if len(keys) != len(pairs):
        most_frequent, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise ValueError(f"the key {most_frequent!r:.60} occurs twice in an object")
    return keys


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _refuse(error: Exception) -> NoReturn:
    raise UsageError(f"json_schema must be JSON: {error}", _GIVE_SCHEMA) from None
