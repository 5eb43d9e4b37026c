"""Options of `borrador serve`. Each may be set in the environment too; the command line wins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from borrador.cli.api_keys import read_keys
from borrador.cli.completion import complete_drafter, complete_model, complete_words
from borrador.cli.option_groups import DraftOptions, MachineOptions
from borrador.cli.options import (
    DRAFT_HELP,
    DRAFT_WEIGHTS_HELP,
    ENGINE,
    parse_count,
    parse_draft_weights,
    parse_integer,
    parse_number,
    parse_word,
)
from borrador.config import DRAFT_WEIGHTS, DraftWeights
from borrador.server.config import SECONDS, STREAM_PACING, ServerConfig, StreamPacing

SERVER = ServerConfig()

_UNITS = {"k": 2**10, "m": 2**20, "g": 2**30}


def parse_bytes(text: str | int) -> int:
    """A number of bytes; a final `k`, `m` or `g` multiplies it by 2^10, 2^20 or 2^30."""
    unit = _UNITS.get(text[-1:].lower(), 1) if isinstance(text, str) else 1
    digits = text[:-1] if isinstance(text, str) and unit > 1 else text
    try:
        return int(digits) * unit
    except ValueError:
        raise typer.BadParameter(f"{text!r:.40} is not a number of bytes (4g and 512m are)") from None


def seconds_of(field: str) -> Callable[[str | float], float]:
    """A reader of seconds that has the limits of a field of the configuration, and leaves its name out."""
    low, high = SECONDS[field]

    def parse(text: str | float) -> float:
        seconds = parse_number(text)
        if not low <= seconds <= high:
            raise typer.BadParameter(f"must be from {low:g} to {high:g} seconds, got {seconds:g}")
        return seconds

    return parse


def parse_pacing(text: str) -> StreamPacing:
    return parse_word(text, STREAM_PACING)


ModelOption = Annotated[
    str,
    typer.Option(
        "-m",
        "--model",
        metavar="MODEL",
        envvar="BORRADOR_MODEL",
        autocompletion=complete_model,
        help="Catalogue name, path, or hf:OWNER/REPO/FILE.gguf.",
    ),
]
DraftOption = Annotated[
    list[str] | None,
    typer.Option(
        "-d",
        "--draft",
        metavar="DRAFT",
        envvar="BORRADOR_DRAFT",
        autocompletion=complete_drafter,
        help=f"{DRAFT_HELP}[default: the saved plan, else auto]",
    ),
]
DraftWeightsOption = Annotated[
    DraftWeights,
    typer.Option(
        "--draft-weights",
        metavar="auto|q4_0|file",
        parser=parse_draft_weights,
        envvar="BORRADOR_DRAFT_WEIGHTS",
        autocompletion=complete_words(DRAFT_WEIGHTS),
        help=DRAFT_WEIGHTS_HELP,
    ),
]
ThreadsOption = Annotated[
    int | None,
    typer.Option(
        "--threads",
        metavar="N",
        parser=parse_integer,
        envvar="BORRADOR_THREADS",
        help="Threads.  [default: the cores this process may use]",
    ),
]
ContextOption = Annotated[
    int | None,
    typer.Option(
        "--context",
        metavar="N",
        parser=parse_count,
        envvar="BORRADOR_CONTEXT",
        help="Maximum tokens of prompt and answer together.  [default: the model's limit, at most 4k]",
    ),
]
HostOption = Annotated[
    str,
    typer.Option(
        "--host",
        metavar="ADDRESS",
        envvar="BORRADOR_HOST",
        help="Address to listen on; one that other machines can reach needs an API key.",
    ),
]
PortOption = Annotated[
    int,
    typer.Option("--port", metavar="N", parser=parse_integer, envvar="BORRADOR_PORT", help="Port; 0 picks a free one."),
]
AliasOption = Annotated[
    str | None,
    typer.Option(
        "--alias",
        metavar="NAME",
        envvar="BORRADOR_ALIAS",
        help="The model's name for clients.  [default: its catalogue name or file name]",
    ),
]
ApiKeyOption = Annotated[
    list[str] | None,
    typer.Option(
        "--api-key",
        metavar="KEY",
        envvar="BORRADOR_API_KEY",
        show_default=False,
        help="Requests must carry it. Others can read a command line: use the environment. Repeat it for several.",
    ),
]
ApiKeyFileOption = Annotated[
    Path | None,
    typer.Option(
        "--api-key-file", metavar="FILE", envvar="BORRADOR_API_KEY_FILE", help="File of API keys, one per line."
    ),
]
InsecureOption = Annotated[
    bool,
    typer.Option("--insecure", envvar="BORRADOR_INSECURE", help="Listen on any address without an API key."),
]
AllowedOriginOption = Annotated[
    list[str] | None,
    typer.Option(
        "--allowed-origin",
        metavar="ORIGIN",
        envvar="BORRADOR_ALLOWED_ORIGIN",
        help="Pages of this origin may use the server, such as https://chat.example.org. Repeat it for several.",
    ),
]
AllowedHostOption = Annotated[
    list[str] | None,
    typer.Option(
        "--allowed-host",
        metavar="NAME",
        envvar="BORRADOR_ALLOWED_HOST",
        help="A name that clients call this server by. Repeat it for several.",
    ),
]
ConcurrentOption = Annotated[
    int,
    typer.Option(
        "--concurrent",
        metavar="N",
        parser=parse_integer,
        envvar="BORRADOR_CONCURRENT",
        help="Answers written at the same time.",
    ),
]
WaitingOption = Annotated[
    int,
    typer.Option(
        "--waiting",
        metavar="N",
        parser=parse_integer,
        envvar="BORRADOR_WAITING",
        help="Further requests that may wait; more are refused.",
    ),
]
CacheBytesOption = Annotated[
    int | None,
    typer.Option(
        "--cache-bytes",
        metavar="N",
        parser=parse_bytes,
        envvar="BORRADOR_CACHE_BYTES",
        help="Memory for keys and values, such as 4g.  [default: half of what is free]",
    ),
]
TimeoutOption = Annotated[
    float,
    typer.Option(
        "--timeout",
        metavar="SECONDS",
        parser=seconds_of("request_timeout_s"),
        envvar="BORRADOR_TIMEOUT",
        help="Time limit of an answer, which then ends as it is.",
    ),
]
DrainOption = Annotated[
    float,
    typer.Option(
        "--drain",
        metavar="SECONDS",
        parser=seconds_of("drain_s"),
        envvar="BORRADOR_DRAIN",
        help="Time that running answers get to finish when the server ends.",
    ),
]
StreamPacingOption = Annotated[
    StreamPacing,
    typer.Option(
        "--stream-pacing",
        metavar="MODE",
        parser=parse_pacing,
        autocompletion=complete_words(STREAM_PACING),
        envvar="BORRADOR_STREAM_PACING",
        help="Send tokens as they come (none), one at a time (token), or in blocks of one size (fixed-interval).",
    ),
]
PacingIntervalOption = Annotated[
    float | None,
    typer.Option(
        "--pacing-interval",
        metavar="SECONDS",
        parser=seconds_of("pacing_s"),
        envvar="BORRADOR_PACING_INTERVAL",
        help=f"Time between blocks of fixed-interval.  [default: {SERVER.pacing_s}]",
    ),
]
QuietOption = Annotated[bool, typer.Option("-q", "--quiet", help="No notices, and no line per request.")]


@dataclass(frozen=True, kw_only=True)
class ServedDraftOptions(DraftOptions):
    draft: DraftOption = None
    draft_weights: DraftWeightsOption = ENGINE.draft_weights


@dataclass(frozen=True, kw_only=True)
class ServedMachineOptions(MachineOptions):
    threads: ThreadsOption = ENGINE.threads
    context: ContextOption = ENGINE.context


@dataclass(frozen=True, kw_only=True)
class ServerOptions:
    """Who may use the server, and how much of it."""

    host: HostOption = SERVER.host
    port: PortOption = SERVER.port
    alias: AliasOption = SERVER.alias
    api_key: ApiKeyOption = None
    api_key_file: ApiKeyFileOption = None
    insecure: InsecureOption = SERVER.insecure
    allowed_origin: AllowedOriginOption = None
    allowed_host: AllowedHostOption = None
    concurrent: ConcurrentOption = SERVER.concurrent
    waiting: WaitingOption = SERVER.waiting
    cache_bytes: CacheBytesOption = SERVER.cache_bytes
    timeout: TimeoutOption = SERVER.request_timeout_s
    drain: DrainOption = SERVER.drain_s
    stream_pacing: StreamPacingOption = SERVER.stream_pacing
    pacing_interval: PacingIntervalOption = None

    def config(self) -> ServerConfig:
        """The server that these options set up. Raises UsageError where a value breaks its rule."""
        return ServerConfig(
            host=self.host,
            port=self.port,
            alias=self.alias,
            api_keys=read_keys(self.api_key, self.api_key_file),
            insecure=self.insecure,
            allowed_origins=tuple(self.allowed_origin or ()),
            allowed_hosts=tuple(self.allowed_host or ()),
            concurrent=self.concurrent,
            waiting=self.waiting,
            cache_bytes=self.cache_bytes,
            request_timeout_s=self.timeout,
            drain_s=self.drain,
            stream_pacing=self.stream_pacing,
            pacing_s=SERVER.pacing_s if self.pacing_interval is None else self.pacing_interval,
        )
