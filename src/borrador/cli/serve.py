"""`borrador serve`: an OpenAI-compatible server."""

from __future__ import annotations

import contextlib
import logging
import sys
from pathlib import Path

from borrador.cli import options as opt
from borrador.cli import server_options as srv
from borrador.cli.models import find_models
from borrador.cli.run import follow_plan, open_llm
from borrador.errors import BorradorError, UsageError
from borrador.extras import missing_packages
from borrador.models.catalogue import CATALOGUE
from borrador.server.config import ServerConfig


def serve(
    model: srv.ModelOption = opt.MODEL,
    draft: srv.DraftOption = None,
    draft_tokens: opt.DraftTokensOption = opt.ENGINE.draft_tokens,
    draft_shortlist: opt.DraftShortlistOption = opt.ENGINE.draft_shortlist,
    history: opt.HistoryOption = opt.ENGINE.history,
    threads: srv.ThreadsOption = opt.ENGINE.threads,
    context: srv.ContextOption = opt.ENGINE.context,
    profile: opt.ProfileOption = opt.ENGINE.profile,
    host: srv.HostOption = srv.SERVER.host,
    port: srv.PortOption = srv.SERVER.port,
    alias: srv.AliasOption = srv.SERVER.alias,
    api_key: srv.ApiKeyOption = None,
    api_key_file: srv.ApiKeyFileOption = None,
    insecure: srv.InsecureOption = srv.SERVER.insecure,
    allowed_origin: srv.AllowedOriginOption = None,
    allowed_host: srv.AllowedHostOption = None,
    concurrent: srv.ConcurrentOption = srv.SERVER.concurrent,
    waiting: srv.WaitingOption = srv.SERVER.waiting,
    cache_bytes: srv.CacheBytesOption = srv.SERVER.cache_bytes,
    timeout: srv.TimeoutOption = srv.SERVER.request_timeout_s,
    drain: srv.DrainOption = srv.SERVER.drain_s,
    stream_pacing: srv.StreamPacingOption = srv.SERVER.stream_pacing,
    pacing_interval: srv.PacingIntervalOption = None,
    quiet: srv.QuietOption = False,
) -> None:
    """Serve a model over HTTP, with the API of OpenAI's server and a page to chat on.

    Ctrl-C or SIGTERM lets running answers come to their end; a second one ends the server at once.
    """
    _require_packages()
    server = ServerConfig(
        host=host,
        port=port,
        alias=alias,
        api_keys=srv.read_keys(api_key, api_key_file),
        insecure=insecure,
        allowed_origins=tuple(allowed_origin or ()),
        allowed_hosts=tuple(allowed_host or ()),
        concurrent=concurrent,
        waiting=waiting,
        cache_bytes=cache_bytes,
        request_timeout_s=timeout,
        drain_s=drain,
        stream_pacing=stream_pacing,
        pacing_s=srv.SERVER.pacing_s if pacing_interval is None else pacing_interval,
    )
    _require_agreement(history, pacing_interval, server)
    engine = opt.engine_config(draft, threads, context, draft_tokens, draft_shortlist, profile=profile, history=history)
    find_models(model, engine, quiet=quiet)
    if draft is None:
        engine = follow_plan(model, engine, quiet=quiet)
    if not quiet:
        _log_requests()
    from borrador.server import running

    drafts = ", ".join(engine.draft)
    running.serve(
        server,
        model if model in CATALOGUE else Path(model).stem,
        lambda: open_llm(model, engine, quiet=True),
        lambda name, url: _announce(f"serving {name} at {url}, drafts: {drafts}"),
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
