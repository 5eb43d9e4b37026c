"""`borrador serve`: an OpenAI-compatible server."""

from __future__ import annotations

import contextlib
import logging
import sys
from pathlib import Path

from borrador.cli import options as opt
from borrador.cli import server_options as srv
from borrador.cli.models import find_models
from borrador.cli.option_groups import engine_config, spread_groups
from borrador.cli.run import follow_plan, open_llm
from borrador.errors import BorradorError, UsageError
from borrador.extras import missing_packages
from borrador.models.catalogue import CATALOGUE
from borrador.server.config import ServerConfig


@spread_groups
def serve(
    *,
    model: srv.ModelOption = opt.MODEL,
    drafts: srv.ServedDraftOptions,
    machine: srv.ServedMachineOptions,
    server: srv.ServerOptions,
    quiet: srv.QuietOption = False,
) -> None:
    """Serve a model over HTTP, with OpenAI's API and a chat page.

    Ctrl-C or SIGTERM lets running answers finish; a second one ends the server at once.
    """
    _require_packages()
    config = server.config()
    _require_agreement(drafts.history, server.pacing_interval, config)
    engine = engine_config(drafts, machine)
    find_models(model, engine, quiet=quiet)
    if drafts.draft is None:
        engine = follow_plan(model, engine, quiet=quiet)
    if not quiet:
        _log_requests()
    from borrador.server import running

    names = ", ".join(engine.draft)
    running.serve(
        config,
        model if model in CATALOGUE else Path(model).stem,
        lambda: open_llm(model, engine, quiet=True),
        lambda name, url: _announce(f"serving {name} at {url}, drafts: {names}"),
    )


def _require_packages() -> None:
    missing = missing_packages("server")
    if missing:
        raise BorradorError(
            f"the server needs packages that are not installed: {', '.join(missing)}",
            "Run: pip install 'borrador[server]'",
        )


def _require_agreement(history: str | None, pacing_interval: float | None, server: ServerConfig) -> None:
    """Refuse options that would do harm, or nothing, beside the others."""
    if history is not None and len(server.api_keys) > 1:
        # Answers drafted from other people's would tell, by their speed, what those are about.
        raise UsageError(
            f"--history {history} would be shared by all who have a key, and there are {len(server.api_keys)} keys",
            "Serve each of them by a server of its own, or drop --history.",
        )
    if pacing_interval is not None and server.stream_pacing != "fixed-interval":
        raise UsageError(
            f"--pacing-interval {pacing_interval:g} needs --stream-pacing fixed-interval, which is"
            f" {server.stream_pacing}",
            "Drop the one or change the other.",
        )


def _log_requests() -> None:
    from borrador.server.request_log import ACCESS_LOG

    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    log = logging.getLogger(ACCESS_LOG)
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False


def _announce(sentence: str) -> None:
    """Whoever started the server may wait for this line; nobody needs to read it."""
    with contextlib.suppress(OSError, ValueError):
        if sys.stdout is not None:
            sys.stdout.write(f"{sentence}\n")
            sys.stdout.flush()
