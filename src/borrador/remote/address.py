"""Where a server is, from what a user types."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, field
from urllib.parse import SplitResult, urlsplit

from borrador.errors import UsageError

_HINT = "Give the server's address, such as http://127.0.0.1:8080."
_ENDPOINT = re.compile(r"/(chat/completions|completions|models)$")
_VERSION = re.compile(r"/v\d+$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """The address of an OpenAI-compatible server.

    Attributes:
        base: where its endpoints are: a URL that ends in `/v1`, or whatever version was given.
        host: name or number of the machine.
        api_key: sent with every request; None sends none.
    """

    base: str
    host: str
    api_key: str | None = field(default=None, repr=False)

    @classmethod
    def parse(cls, url: str, api_key: str | None = None) -> Address:
        """The address that a user means; `/v1` is added, and the path of an endpoint taken away.

        Raises:
            UsageError: it is no address of a web server, or the key could not be sent.
        """
        parts = _split(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(f"--url must begin with http:// or https:// and a host, got {url!r:.120}", _HINT)
        if parts.username is not None or parts.query or parts.fragment:
            raise UsageError("--url must be an address alone, without user, query or fragment", _HINT)
        path = _ENDPOINT.sub("", parts.path.rstrip("/"))
        version = "" if _VERSION.search(path) else "/v1"
        return cls(
            base=f"{parts.scheme}://{parts.netloc}{path}{version}", host=parts.hostname, api_key=_checked(api_key)
        )

    @property
    def is_loopback(self) -> bool:
        """It is this machine, which no proxy could reach."""
        try:
            return self.host == "localhost" or ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url.strip())
        parts.port  # noqa: B018 (raises for what is no port)
        url.encode("ascii")
    except ValueError:
        raise UsageError(f"--url must be a web address, got {url!r:.120}", _HINT) from None
    return parts


def _checked(api_key: str | None) -> str | None:
    if api_key is not None and (not api_key or not api_key.isascii() or not api_key.isprintable() or " " in api_key):
        raise UsageError("--api-key must be printable ASCII without blanks, and it is not", "Check how it was copied.")
    return api_key
