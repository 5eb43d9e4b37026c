"""Servers on real sockets for tests."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import uvicorn
from starlette.types import ASGIApp
from tests.batches import PATIENCE_S

from borrador.server.config import ServerConfig
from borrador.server.listening import bind, uvicorn_config


class Reply(NamedTuple):
    """What a raw request was answered with."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def error(self) -> dict[str, Any]:
        error: dict[str, Any] = json.loads(self.body)["error"]
        return error


@contextlib.contextmanager
def serving(app: ASGIApp, config: ServerConfig | None = None) -> Iterator[int]:
    """The port of a server that runs in a thread."""
    config = config or ServerConfig(port=0)
    listener = bind(config)
    server = uvicorn.Server(uvicorn_config(app, config))
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    try:
        while not server.started:
            time.sleep(0.005)
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)


def exchange(port: int, *pieces: bytes) -> Reply:
    """What a server answers to these bytes."""
    with connect(port) as client:
        for piece in pieces:
            client.sendall(piece)
        return read_reply(client)


def read_reply(client: socket.socket) -> Reply:
    """One response of known length."""
    with client.makefile("rb") as stream:
        status = int(stream.readline().split()[1])
        headers = {}
        while line := stream.readline().strip():
            name, _, value = line.decode().partition(": ")
            headers[name.lower()] = value
        return Reply(status, headers, stream.read(int(headers.get("content-length", 0))))


def request(path: str, *headers: str, method: str = "GET", host: str = "127.0.0.1") -> bytes:
    """The header of a request."""
    return "\r\n".join([f"{method} {path} HTTP/1.1", f"Host: {host}", *headers, "", ""]).encode()
