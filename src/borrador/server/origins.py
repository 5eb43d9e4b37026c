"""Which names the server answers to, and which web pages may use it.

A page of any site can make its reader's browser send requests to this machine. Browsers say where those come from in
`Origin`; and where a name was made to lead here (DNS rebinding), `Host` shows that name.
"""

from __future__ import annotations

import ipaddress
import re

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from borrador.server.config import ServerConfig, is_loopback
from borrador.server.errors import ApiError
from borrador.server.refusal import header_values, refuse

_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:[0-9]{1,5})?")
_PREFLIGHT = [
    (b"access-control-allow-methods", b"GET, POST"),
    (b"access-control-allow-headers", b"authorization, content-type, x-api-key, x-request-id"),
    (b"access-control-max-age", b"600"),
    (b"content-length", b"0"),
]


class Origins:
    """Lets requests through that are addressed to this server, and come from no web page of an unknown origin.

    It answers to the loopback names, the name it listens on and the allowed hosts; where other machines may reach it,
    to any address too, since a name is what an attack by DNS rebinding needs. Pages of the allowed origins and its own
    page may use it.

    Args:
        app: gets the requests.
        config: says which hosts and origins are allowed.
    """

    def __init__(self, app: ASGIApp, config: ServerConfig) -> None:
        self._app = app
        self._hosts = {*config.allowed_hosts, config.host.lower()}
        self._origins = {origin.encode() for origin in config.allowed_origins}
        self._any_address = config.is_public

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            origin = self._foreign_origin(scope, self._host(scope))
        except ApiError as error:
            await refuse(error, scope, receive, send)
            return
        if origin is None:
            await self._app(scope, receive, send)
        elif scope["method"] == "OPTIONS" and header_values(scope, b"access-control-request-method"):
            headers = [*_PREFLIGHT, *_permission(origin)]
            await send({"type": "http.response.start", "status": 204, "headers": headers})
            await send({"type": "http.response.body"})
        else:
            await self._app(scope, receive, _permitting(origin, send))

    def _host(self, scope: Scope) -> bytes:
        """The host that the request is addressed to, as it stands there in lower case."""
        values = header_values(scope, b"host")
        if len(values) != 1:
            raise ApiError(400, f"A request must have one Host header, it has {len(values)}.", code="invalid_host")
        value = values[0].lower()
        found = _HOST.fullmatch(value.decode("latin-1"))
        if found is None or not self._answers_to(found[1].rstrip(".")):
            message = f"This server does not answer to the host {value.decode('latin-1')!r:.80}."
            raise ApiError(403, f"{message} Start it with --allowed-host to add a name.", code="foreign_host")
        return value

    def _answers_to(self, name: str) -> bool:
        return name in self._hosts or is_loopback(name) or (self._any_address and _is_address(name))

    def _foreign_origin(self, scope: Scope, host: bytes) -> bytes | None:
        """The allowed origin that a request comes from; None where it comes from no page, or from the server's own."""
        values = header_values(scope, b"origin")
        if not values:
            return None
        origin = values[0].lower()
        if len(values) == 1 and origin in self._origins:
            return origin
        if len(values) == 1 and origin in (b"http://" + host, b"https://" + host):
            return None
        message = f"Pages of {origin.decode('latin-1')!r:.80} may not use this server."
        raise ApiError(403, f"{message} Start it with --allowed-origin to allow them.", code="foreign_origin")


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


def _permission(origin: bytes) -> list[tuple[bytes, bytes]]:
    return [(b"access-control-allow-origin", origin), (b"vary", b"Origin")]


def _permitting(origin: bytes, send: Send) -> Send:
    """A way to send responses that lets pages of this origin read them."""
    headers = [*_permission(origin), (b"access-control-expose-headers", b"x-request-id, retry-after")]

    async def permit(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), *headers]}
        await send(message)

    return permit
