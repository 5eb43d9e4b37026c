"""What a server serves: the app, and behind it, once it is loaded, a model with what writes its answers."""

from __future__ import annotations

import asyncio
import time

from starlette.types import ASGIApp

from borrador.engine.llm import LLM
from borrador.engine.scheduler import Scheduler, SchedulerLimits
from borrador.server.app import create_app
from borrador.server.bridge import Bridge, Served
from borrador.server.config import ServerConfig
from borrador.server.guard import guarded
from borrador.server.metrics import Metrics
from borrador.server.pacing import FixedIntervals, TokenPace


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

    def app(self) -> ASGIApp:
        """What answers requests, from the beginning."""
        config, metrics = self._config, self._metrics
        pace = TokenPace if config.stream_pacing == "token" else None
        app: ASGIApp = create_app(self._bridge, routes=metrics.routes(), observer=metrics.count_outcome, pace=pace)
        if config.stream_pacing == "fixed-interval":
            app = FixedIntervals(app, config.pacing_s)
        return guarded(app, config, metrics.count_status)

    def open(self, llm: LLM) -> None:
        """Begin to write answers. The model is closed with the service."""
        self._llm = llm
        limits = SchedulerLimits(concurrent=self._config.concurrent, waiting=self._config.waiting)
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
