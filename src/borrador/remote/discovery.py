"""What a server is: the models it lists, and whether it can be told how to draft."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from borrador.errors import BorradorError, UsageError
from borrador.remote.address import Address
from borrador.remote.connection import describe_failure
from borrador.remote.refusal import RefusedError, refusal

if TYPE_CHECKING:
    import httpx

SpeculativeField = Literal["understood", "refused", "ignored"]


def find_model(client: httpx.Client, address: Address, name: str | None = None) -> str:
    """The model to ask for: the one named, or the first that the server lists.

    Raises:
        BorradorError: the server cannot be reached, is not of this kind, or lists no model.
        UsageError: it does not list the one named, or wants a key.
    """
    names = list_models(client, address)
    if not names:
        raise BorradorError(f"{address.base} lists no model", "Load one on that server.")
    if name is not None and name not in names:
        raise UsageError(f"{address.base} has no model {name!r:.80}", f"It lists {', '.join(names)[:200]}.")
    return names[0] if name is None else name


def list_models(client: httpx.Client, address: Address) -> list[str]:
    """The names of all models. Errors as for `find_model`."""
    import httpx

    try:
        response = client.get(f"{address.base}/models")
    except httpx.HTTPError as error:
        raise describe_failure(address, error) from error
    if response.status_code != 200:
        raise refusal(address.base, response.status_code, response.content, response.headers.get("retry-after"))
    try:
        return [str(entry["id"]) for entry in response.json()["data"]]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise BorradorError(
            f"{address.base} is not an OpenAI-compatible API: it does not list models as JSON",
            "Check the address and its port.",
        ) from None


def probe_speculation(client: httpx.Client, address: Address, model: str) -> SpeculativeField:
    """Whether the server does what the request field `speculative` says.

    Two answers of one token tell: a server that takes the field as it should be, and as it should not be, ignores it.

    Raises:
        BorradorError: it answers neither.
    """
    try:
        _ask_for_a_token(client, address, model, {"enabled": False})
    except RefusedError as error:
        if error.names("speculative"):
            return "refused"
        raise
    try:
        _ask_for_a_token(client, address, model, {"enabled": "neither"})
    except RefusedError as error:
        if error.status in (400, 422):
            return "understood"
        raise
    return "ignored"


def _ask_for_a_token(client: httpx.Client, address: Address, model: str, speculative: Mapping[str, Any]) -> None:
    import httpx

    messages = [{"role": "user", "content": "Hello"}]
    body = {"model": model, "messages": messages, "max_tokens": 1, "temperature": 0, "speculative": speculative}
    try:
        response = client.post(f"{address.base}/chat/completions", json=body)
    except httpx.HTTPError as error:
        raise describe_failure(address, error) from error
    if response.status_code != 200:
        raise refusal(address.base, response.status_code, response.content, response.headers.get("retry-after"))
