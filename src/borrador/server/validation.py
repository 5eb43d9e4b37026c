"""From the bytes of a body to a checked request."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ValidationError

from borrador.server.errors import ApiError, refusal
from borrador.server.json_body import parse_json

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

Request = TypeVar("Request", bound=BaseModel)

_REFUSED = {
    "audio": "answers are text",
    "function_call": "its successor is tool_choice",
    "functions": "its successor is tools",
    "prediction": "drafts come from the server's own drafters",
    "prompt_cache_retention": "prompts stay cached while there is room",
    "reasoning_effort": "the model decides how long it thinks",
    "verbosity": "say it in the prompt",
    "web_search_options": "the server does not search the web",
}
_JSON_WORDS = {"None": "null", "True": "true", "False": "false", "dictionary": "object"}
_PYTHON_WORDS = re.compile(rf"\b({'|'.join(_JSON_WORDS)})\b")
_PYTHON_SIDE = re.compile(
    r"^(\w+ should|Value error, must) | after validation, not \d+$| or (instance of \w+|object to extract fields from)$"
)


def read_request(kind: type[Request], body: bytes, depth: int) -> Request:
    """The request that a body holds.

    Args:
        kind: of request.
        body: as it arrived.
        depth: levels of nesting that it may have.

    Raises:
        JsonError: it is not JSON.
        ApiError: a field breaks a rule; it is named.
    """
    fields = parse_json(body, depth)
    for name in _REFUSED.keys() & fields.keys() - kind.model_fields.keys():
        if fields.pop(name) is not None:
            raise refusal(f"{name} is not supported: {_REFUSED[name]}.", name, "unsupported_parameter")
    try:
        return kind.model_validate(fields)
    except ValidationError as error:
        raise _explain(error, fields, kind) from None


def _explain(error: ValidationError, body: Mapping[str, Any], kind: type[BaseModel]) -> ApiError:
    """The error of the field that got furthest: of several forms a value may have, that is the one that was meant."""
    faults = error.errors(include_url=False)
    found = max(faults, key=_nearness)
    path = _path(found["loc"], body, is_missing=found["type"] == "missing")
    match found["type"]:
        case "missing":
            return refusal(f"{path} must be given, it is missing.", path, "missing_required_parameter")
        case "extra_forbidden":
            return refusal(
                f"{path} is not a field of this request.{_suggestion(path, kind)}", path, "unknown_parameter"
            )
        case "union_tag_invalid" | "union_tag_not_found" as fault:
            name = found["ctx"]["discriminator"].strip("'")
            tags = "one of " + found["ctx"]["expected_tags"] if "expected_tags" in found["ctx"] else "given"
            given = f", got {_shown(found['ctx']['tag'])}" if fault == "union_tag_invalid" else ", it is missing"
            return refusal(f"{path}.{name} must be {tags}{given}.", f"{path}.{name}", "invalid_value")
    forms = (each for each in faults if _nearness(each) == _nearness(found) and each["input"] is found["input"])
    rules = " or ".join(dict.fromkeys(_rule(each) for each in forms if each["loc"][:1] == found["loc"][:1]))
    rules = rules.replace(" or be ", " or ")
    return refusal(f"{path or 'the body'} must {rules}, got {_shown(found['input'])}.", path, "invalid_value")


def _nearness(fault: ErrorDetails) -> tuple[int, bool]:
    """How near a value came to the form that this fault is of: a value of the right type is nearer than any other."""
    return len(fault["loc"]), not fault["type"].endswith("_type")


def _rule(fault: ErrorDetails) -> str:
    """What the value must do, in the words of JSON."""
    return _PYTHON_WORDS.sub(lambda found: _JSON_WORDS[found[0]], _PYTHON_SIDE.sub("", fault["msg"]))


def _path(location: Sequence[int | str], body: Any, *, is_missing: bool) -> str:
    """Where in the body the field stands; a location also names the forms that were tried."""
    path, value = "", body
    for index, step in enumerate(location):
        if isinstance(value, list) and isinstance(step, int) and step < len(value):
            path, value = f"{path}[{step}]", value[step]
        elif isinstance(value, dict) and step in value:
            path, value = f"{path}.{step}" if path else str(step), value[str(step)]
        elif is_missing and index == len(location) - 1:
            path = f"{path}.{step}" if path else str(step)
    return path


def _suggestion(path: str, kind: type[BaseModel]) -> str:
    close = [] if "." in path else difflib.get_close_matches(path, kind.model_fields, n=1)
    return f" Did you mean {close[0]}?" if close else ""


def _shown(value: Any) -> str:
    if isinstance(value, dict | list) and len(value) > 8:
        return f"{'an object' if isinstance(value, dict) else 'a list'} of {len(value)}"
    return f"{value[:80]!r}" if isinstance(value, str) else f"{json.dumps(value, ensure_ascii=False):.80}"
