"""A server that runs until it is told to end. It listens first and loads its model then; a signal lets it end when its
answers have ended, another one at once."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType

import uvicorn

from borrador.engine.llm import LLM
from borrador.server.config import ServerConfig
from borrador.server.listening import bind, url_of, uvicorn_config
from borrador.server.service import Service

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
# Python's own 5 ms are longer than a pass of a small model: the thread that writes would wait as long for each of them.
_HANDOVER_S = 0.0005


def serve(config: ServerConfig, name: str, load: Callable[[], LLM], announce: Callable[[str, str], None]) -> None:
    """Serve a model until a signal comes, and answers have ended. The process should have nothing else to do: its
    threads change places sooner from then on.

    Args:
        config: of the server.
        name: of the model, where the configuration has none.
        load: loads it; called on a thread, while requests are refused with 503.
        announce: told the model's name and the server's URL when it is loaded.

    Raises:
        BorradorError: the address cannot be listened on; or whatever `load` raises.
    """
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)  # what clients do wrong is said to them
    sys.setswitchinterval(_HANDOVER_S)
    with bind(config) as listener:
        server = Server(config, Service(config, name), load, announce, url_of(listener))
        server.run(sockets=[listener])
    if server.error is not None:
        raise server.error


class Server(uvicorn.Server):
    """uvicorn's server with a beginning and an end of our own.

    Args:
        config: of the server.
        service: that it runs.
        load: as for `serve`.
        announce: as for `serve`.
        url: of the server.
    """

    def __init__(
        self,
        config: ServerConfig,
        service: Service,
        load: Callable[[], LLM],
        announce: Callable[[str, str], None],
        url: str,
    ) -> None:
        super().__init__(uvicorn_config(service.app(), config))
        self._service = service
        self._load = load
        self._announce = announce
        self._url = url
        self._opening: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None
        self._is_told = False
        self.error: Exception | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self._loop = asyncio.get_running_loop()
        self._opening = self._loop.create_task(self._open())

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await super().shutdown(sockets=sockets)
        self._service.close()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self._take_signal) for number in _SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def end(self) -> None:
        """Let answers end, and then the server. To be called on its event loop."""
        if self._ending is None:
            self._ending = self._loop.create_task(self._end())

    def _take_signal(self, number: int, _frame: FrameType | None) -> None:
        if self._is_told:
            _leave(128 + number)
        if not self._service.is_open:  # there is nothing to wait for but a model that nobody will need
            _leave(0)
        self._is_told = True
        self._loop.call_soon_threadsafe(self.end)

    async def _open(self) -> None:
        try:
            llm = await asyncio.to_thread(self._load)
            self._service.open(llm)
            self._announce(self._service.name, self._url)
        except Exception as error:  # noqa: BLE001 - it is raised where the server was started
            self.error = error
            self.should_exit = True

    async def _end(self) -> None:
        await self._service.end()
        self.should_exit = True


def _leave(code: int) -> None:
    """End the process at once, whatever its threads are at."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(code)
