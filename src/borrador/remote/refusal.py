"""What a server says where it does not answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from borrador.errors import BorradorError, ContextLengthError, UsageError

_LONGEST_MESSAGE = 300
_MOST_PAUSE_S = 60.0


class RefusedError(BorradorError):
    """A server answered with an error.

    Attributes:
        status: of HTTP; 200 for an error in the middle of an answer.
        fields: what the error object says: `message`, `param`, `code`.
        pause_s: how long the server asks to wait; 0 where it does not say.
    """

    def __init__(
        self,
        message: str,
        hint: str = "",
        *,
        status: int,
        fields: Mapping[str, Any] | None = None,
        pause_s: float = 0.0,
    ) -> None:
        super().__init__(message, hint)
        self.status = status
        self.fields = fields or {}
        self.pause_s = pause_s

    def names(self, parameter: str) -> bool:
        """The request was refused for this parameter."""
        said = f"{self.fields.get('param')} {self.fields.get('message')}"
        return self.status in (400, 422) and parameter in said


def refusal(base: str, status: int, body: bytes, retry_after: str | None = None) -> BorradorError:
    """The error that a response stands for.

    Args:
        base: the server's address.
        status: of HTTP.
        body: or the beginning of it.
        retry_after: that header.
    """
    fields = error_fields(body)
    message = one_line(fields.get("message"))
    if status in (401, 403):
        return UsageError(f"{base} refuses access: {message or status}", "Give its key with --api-key.")
    if fields.get("code") == "context_length_exceeded":
        return ContextLengthError(message or "the prompt does not fit into the context", "Shorten it.")
    if status == 429:
        pause_s = _seconds(retry_after)
        hint = f"Try again in {pause_s:g} s." if pause_s else "Try again later."
        return RefusedError(
            f"{base} is busy: {message or 'too many requests'}", hint, status=status, fields=fields, pause_s=pause_s
        )
    if not message:
        return RefusedError(
            f"{base} is not an OpenAI-compatible API: it answered with status {status}",
            "Check the address and its port.",
            status=status,
        )
    return RefusedError(
        f"the server refused the request ({status}): {message}", "Change what it names.", status=status, fields=fields
    )


def error_fields(body: bytes | Mapping[str, Any]) -> Mapping[str, Any]:
    """The error object of a response, or of an event; empty where there is none."""
    try:
        entry = json.loads(body) if isinstance(body, bytes) else body
    except (ValueError, RecursionError):
        return {}
    error = entry.get("error", entry.get("detail")) if isinstance(entry, Mapping) else None
    if isinstance(error, Mapping):
        return error
    return {} if error is None else {"message": error if isinstance(error, str) else json.dumps(error)}


def one_line(message: object) -> str:
    """A server's words, fit for one line of a terminal."""
    words = " ".join(message.split()) if isinstance(message, str) else ""
    return "".join(character for character in words if character.isprintable())[:_LONGEST_MESSAGE].rstrip(".")


def _seconds(text: str | None) -> float:
    try:
        return min(max(float(text or 0), 0.0), _MOST_PAUSE_S)
    except ValueError:
        return 0.0
