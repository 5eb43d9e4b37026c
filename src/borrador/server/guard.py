"""What every request passes before the app sees it."""

from __future__ import annotations

from collections.abc import Callable

from starlette.types import ASGIApp

from borrador.server.bodies import Bodies
from borrador.server.config import ServerConfig
from borrador.server.keys import Keys
from borrador.server.origins import Origins
from borrador.server.request_log import RequestLog


def guarded(app: ASGIApp, config: ServerConfig, count: Callable[[int], None] | None = None) -> ASGIApp:
    """The app behind its guards, from the outside: a name and a line in the log, Host and Origin, API key, body.

    Args:
        app: gets the requests that pass, with `request_id` and `namespace` in their state.
        config: says what passes.
        count: told the status of every response; 0 where the client left before there was one.
    """
    bodies = Bodies(app, most=config.body_bytes, timeout_s=config.body_timeout_s)
    return RequestLog(Origins(Keys(bodies, config.api_keys), config), count)
