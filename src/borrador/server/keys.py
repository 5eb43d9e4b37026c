"""API keys: who may use the server, and whose requests belong together."""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Iterator, Sequence
from hashlib import sha256

from starlette.types import ASGIApp, Receive, Scope, Send

from borrador.server.errors import ApiError
from borrador.server.refusal import header_values, refuse

OPEN_PATHS = ("/health",)
_NAMESPACE_DIGITS = 16


def namespace_of(key: str) -> str:
    """The namespace of whoever has this key."""
    return sha256(key.encode()).hexdigest()[:_NAMESPACE_DIGITS]


class Keys:
    """Lets requests through that carry a key, and notes their namespace in the scope's state as `namespace`.

    A key is given as `Authorization: Bearer KEY`, as `X-Api-Key: KEY`, or as the password of `Authorization: Basic`,
    which is how a browser that opens the page gives it. Only `/health` may be asked without one.

    Args:
        app: gets the requests.
        keys: with none, everybody may use it, in the namespace "".
    """

    def __init__(self, app: ASGIApp, keys: Sequence[str]) -> None:
        self._app = app
        self._digests = [(sha256(key.encode()).digest(), namespace_of(key)) for key in keys]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        namespace = self._namespace(scope) if self._digests else ""
        if namespace is None and scope["path"] not in OPEN_PATHS:
            await refuse(_refusal(scope), scope, receive, send)
            return
        scope.setdefault("state", {})["namespace"] = namespace or ""
        await self._app(scope, receive, send)

    def _namespace(self, scope: Scope) -> str | None:
        """Digests are compared, and always all of them, so that the time it takes tells nothing about the keys."""
        found = None
        for given in _given_keys(scope):
            digest = sha256(given).digest()
            for known, namespace in self._digests:
                if hmac.compare_digest(digest, known):
                    found = namespace
        return found


def _given_keys(scope: Scope) -> Iterator[bytes]:
    yield from header_values(scope, b"x-api-key")
    for value in header_values(scope, b"authorization"):
        scheme, _, credentials = value.partition(b" ")
        if scheme.lower() == b"bearer":
            yield credentials.strip()
        elif scheme.lower() == b"basic":
            yield _password(credentials)


def _password(credentials: bytes) -> bytes:
    try:
        return base64.b64decode(credentials.strip(), validate=True).partition(b":")[2]
    except binascii.Error:
        return b""


def _refusal(scope: Scope) -> ApiError:
    """A browser asks for the key where the page is opened; a script that fetches something else asks for itself."""
    scheme = (
        'Basic realm="borrador: the API key is the password"' if scope["path"] == "/" else 'Bearer realm="borrador"'
    )
    headers = {"WWW-Authenticate": scheme}
    message = "This server needs an API key, none or a wrong one was given. Send Authorization: Bearer KEY."
    return ApiError(401, message, code="invalid_api_key", headers=headers)
