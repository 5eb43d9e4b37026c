"""The whole server in a thread of this process: guards, app, metrics and model on a real socket."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import httpx
from tests.batches import PATIENCE_S

from borrador.engine.llm import LLM
from borrador.server.config import ServerConfig
from borrador.server.listening import bind, url_of
from borrador.server.running import Server
from borrador.server.service import Service


@dataclass(frozen=True, slots=True)
class Whole:
    """A server that runs.

    Attributes:
        port: of it.
        url: of its root.
        client: to talk to it.
        service: behind it.
    """

    port: int
    url: str
    client: httpx.Client
    service: Service

    def metrics(self, **headers: str) -> dict[str, float]:
        """Every sample of `/metrics`, by its name without prefix and its labels as they stand there."""
        text = self.client.get("/metrics", headers=headers).text
        samples = (line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
        return {name.removeprefix("borrador:"): float(value) for name, value in samples}


@contextlib.contextmanager
def whole(llm: LLM, config: ServerConfig | None = None) -> Iterator[Whole]:
    """Serve this LLM, which is closed with the server."""
    config = config or ServerConfig(port=0)
    ready = threading.Event()
    with bind(config) as listener:
        url = url_of(listener)
        service = Service(config, "tiny")
        server = Server(config, service, lambda: llm, lambda _name, _url: ready.set(), url)
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        try:
            assert ready.wait(PATIENCE_S)
            with httpx.Client(base_url=url, timeout=60, trust_env=False) as client:
                yield Whole(listener.getsockname()[1], url, client, service)
        finally:
            server.should_exit = True
            thread.join()
