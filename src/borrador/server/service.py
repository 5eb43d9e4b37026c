"""What a server serves: the app, and behind it, once it is loaded, a model with what writes its answers."""

from __future__ import annotations

import asyncio
import time

from starlette.applications import Starlette
from starlette.types import ASGIApp

from borrador.engine.llm import LLM
from borrador.engine.scheduler import Scheduler, SchedulerLimits
from borrador.server.app import create_app
from borrador.server.bridge import Bridge, Served
from borrador.server.config import ServerConfig
from borrador.server.guard import guarded
from borrador.server.metrics import Metrics
from borrador.server.pacing import FixedIntervals, TokenPace
from borrador.server.page import page_routes


class Service:
    """Puts together what the configuration asks for. All methods belong to the event loop.

    Args:
        config: of the server.
        name: of the model, for clients, where the configuration has no other.
    """

    def __init__(self, config: ServerConfig, name: str) -> None:
        self.name = config.alias or name
        self._config = config
        self._bridge = Bridge(config)
        self._metrics = Metrics()
        self._scheduler: Scheduler | None = None
        self._llm: LLM | None = None

    @property
    def is_open(self) -> bool:
        """Answers can be written, or still are."""
        return self._scheduler is not None

    def api(self) -> Starlette:
        """The app, without what guards it and paces its streams as a whole."""
        pace = TokenPace if self._config.stream_pacing == "token" else None
        routes = [*self._metrics.routes(), *page_routes()]
        return create_app(self._bridge, routes=routes, observer=self._metrics.count_outcome, pace=pace)

    def app(self) -> ASGIApp:
        """What answers requests, from the beginning."""
        app: ASGIApp = self.api()
        if self._config.stream_pacing == "fixed-interval":
            app = FixedIntervals(app, self._config.pacing_s)
        return guarded(app, self._config, self._metrics.count_status)

    def open(self, llm: LLM) -> None:
        """Begin to write answers. The model is closed with the service."""
        self._llm = llm
        config = self._config
        limits = SchedulerLimits(concurrent=config.concurrent, waiting=config.waiting, cache_bytes=config.cache_bytes)
        self._scheduler = Scheduler(llm, limits, self._bridge.listen)
        self._bridge.open(Served(self.name, llm, self._scheduler, int(time.time())))
        self._metrics.open(self.name, self._scheduler.snapshot)

    async def end(self) -> None:
        """Begin no more answers, and let those that are written come to their end for as long as is configured."""
        self._bridge.end()
        if self._scheduler is not None:
            await asyncio.to_thread(self._scheduler.close, self._config.drain_s)

    def close(self) -> None:
        """Stop what is left."""
        if self._scheduler is not None:
            self._scheduler.close()
        if self._llm is not None:
            self._llm.close()
        self._bridge.close()
