"""A server for tests: the real app on a real socket, on a thread of its own."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.routing import BaseRoute
from tests.batches import eventually

from borrador.engine.llm import LLM
from borrador.engine.scheduler import Scheduler, SchedulerLimits
from borrador.server.app import create_app
from borrador.server.bridge import Bridge, Served
from borrador.server.config import ServerConfig
from borrador.server.telling import Outcome

CREATED = 1_700_000_000


@dataclass(frozen=True, slots=True)
class Rig:
    """A server that runs.

    Attributes:
        url: of its root.
        client: to talk to it.
        scheduler: writes its answers.
        bridge: of its app.
        outcomes: of its answers so far.
    """

    url: str
    client: httpx.Client
    scheduler: Scheduler
    bridge: Bridge
    outcomes: list[Outcome]

    @property
    def address(self) -> tuple[str, int]:
        url = httpx.URL(self.url)
        return url.host, url.port or 80

    def post(self, path: str, **body: Any) -> httpx.Response:
        return self.client.post(path, json=body)

    def settle(self) -> None:
        """Wait until nothing is written or waits any more, and every outcome has been told."""
        eventually(lambda: self.scheduler.snapshot().reserved == 0 and not self.bridge.is_busy)


@contextmanager
def serve(
    llm: LLM, config: ServerConfig | None = None, name: str = "tiny", routes: Sequence[BaseRoute] = ()
) -> Iterator[Rig]:
    """A server with this LLM, which is closed with it."""
    config = config or ServerConfig()
    bridge = Bridge(config)
    outcomes: list[Outcome] = []
    limits = SchedulerLimits(concurrent=config.concurrent, waiting=config.waiting)
    with llm, Scheduler(llm, limits, bridge.listen) as scheduler:
        served = Served(name, llm, scheduler, CREATED)
        app = create_app(bridge, routes=routes, observer=outcomes.append)
        with (
            serve_app(app, lambda: bridge.open(served)) as url,
            httpx.Client(base_url=url, timeout=300, trust_env=False) as client,
        ):
            yield Rig(url, client, scheduler, bridge, outcomes)
        bridge.close()


@contextmanager
def serve_app(app: Starlette, begin: Callable[[], None] = lambda: None) -> Iterator[str]:
    """The address of a server with this app.

    Args:
        app: what to serve.
        begin: called on the event loop before anything is served.
    """
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off", ws="none"))

    async def run() -> None:
        begin()
        await server.serve(sockets=[listener])

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=lambda: asyncio.run(run()))
        thread.start()
        try:
            yield "http://{}:{}".format(*listener.getsockname())
        finally:
            server.should_exit = True
            thread.join()
