"""Connections to a server, and what goes wrong on them as sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from borrador.errors import BorradorError, in_words
from borrador.remote.address import Address

if TYPE_CHECKING:
    import httpx

_CONNECT_S = 10.0
_READ_S = 600.0  # a long prompt on a slow machine is silent for minutes


def open_client(address: Address) -> httpx.Client:
    """A client for one request at a time."""
    import httpx

    return httpx.Client(**_options(address))


def open_async_client(address: Address) -> httpx.AsyncClient:
    """A client for any number of requests at a time."""
    import httpx

    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    return httpx.AsyncClient(**_options(address), limits=limits)


def describe_failure(address: Address, error: httpx.HTTPError) -> BorradorError:
    """What a connection suffered."""
    import httpx

    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
        reason = "no answer" if isinstance(error, httpx.ConnectTimeout) else in_words(str(error)) or "no connection"
        return BorradorError(f"{address.base} cannot be reached: {reason}", "Start the server, or check the address.")
    if isinstance(error, httpx.TimeoutException):
        return BorradorError(f"{address.base} was silent for {_READ_S:g} s", "Ask for less, or look at the server.")
    detail = " ".join(str(error).split()) or type(error).__name__
    return BorradorError(f"the connection to {address.base} broke: {detail:.200}", "Look at the server's log.")


def _options(address: Address) -> dict[str, Any]:
    import httpx

    key = {} if address.api_key is None else {"Authorization": f"Bearer {address.api_key}"}
    return {
        "headers": {"Accept-Encoding": "identity", **key},
        "timeout": httpx.Timeout(_READ_S, connect=_CONNECT_S),
        "trust_env": not address.is_loopback,
    }
