"""Where the server listens, and how uvicorn is set up to."""

from __future__ import annotations

import errno
import os
import socket
from functools import partial

import uvicorn
from starlette.types import ASGIApp

from borrador.errors import BorradorError
from borrador.server.config import ServerConfig
from borrador.server.protocol import Connection

_BACKLOG = 2048
_LAST_WORDS_S = 0.5  # for answers that were cut short to say so


def bind(config: ServerConfig) -> socket.socket:
    """A socket at the address and port of the configuration; port 0 has become a real one.

    Raises:
        BorradorError: the port is taken, or the address is not this machine's.
    """
    host, port = config.host.strip("[]"), config.port
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError):
        raise BorradorError(f"the host {host:.80} has no address", "Give an address, such as 127.0.0.1.") from None
    listener = socket.socket(family, kind, protocol)
    try:
        if os.name == "posix":  # elsewhere it would let two servers share a port
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        listener.close()
        raise _describe(error, host, port) from None
    listener.setblocking(False)
    return listener


def url_of(listener: socket.socket) -> str:
    """The address that clients on this machine use."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def uvicorn_config(app: ASGIApp, config: ServerConfig) -> uvicorn.Config:
    """uvicorn, set up to serve an app within the limits of the configuration.

    Headers of proxies that name another client are not believed, since nothing here depends on who that is.
    """
    return uvicorn.Config(
        app,
        http=partial(Connection, limits=config),  # type: ignore[arg-type]
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        backlog=_BACKLOG,
        timeout_keep_alive=config.idle_timeout_s,  # type: ignore[arg-type]
        timeout_graceful_shutdown=_LAST_WORDS_S,  # type: ignore[arg-type]
    )


def _describe(error: OSError, host: str, port: int) -> BorradorError:
    if error.errno == errno.EADDRINUSE:
        return BorradorError(f"port {port} of {host} is in use", "Choose another with --port; 0 takes a free one.")
    if error.errno == errno.EACCES:
        return BorradorError(f"port {port} may not be used by this user", "Choose one above 1023 with --port.")
    return BorradorError(f"cannot listen on {host}: {error.strerror or error}", "Give an address of this machine.")
