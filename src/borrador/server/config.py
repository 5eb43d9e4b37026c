"""How the server is set up: where it listens, who may use it, and every limit it holds requests to."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from borrador.engine.prompts import MOST_CONCURRENT
from borrador.errors import UsageError
from borrador.params import MAX_LOGPROBS
from borrador.values import flag, integer, is_unicode, number

StreamPacing = Literal["token", "fixed-interval", "none"]
STREAM_PACING: tuple[StreamPacing, ...] = ("token", "fixed-interval", "none")

_MIB = 2**20
_INTEGERS = (
    ("port", 0, 65535),
    ("concurrent", 1, MOST_CONCURRENT),
    ("waiting", 0, 65536),
    ("connections", 1, 65536),
    ("body_bytes", 1, 2**30),
    ("header_bytes", 1024, 2**20),
    ("json_depth", 1, 256),
    ("completions", 1, 128),
    ("stop_strings", 0, 64),
    ("stop_characters", 1, 256),
    ("logit_biases", 0, 1024),
    ("top_logprobs", 0, MAX_LOGPROBS),
    ("schema_bytes", 2, 2**18),
    ("schema_depth", 1, 64),
    ("unsent_bytes", 1024, 2**30),
)
SECONDS = {
    "header_timeout_s": (0.1, 3600.0),
    "body_timeout_s": (0.1, 3600.0),
    "idle_timeout_s": (0.1, 3600.0),
    "request_timeout_s": (0.1, 86400.0),
    "ping_s": (0.1, 3600.0),
    "drain_s": (0.0, 3600.0),
    "pacing_s": (0.001, 10.0),
}
_KEY = re.compile(r"[!-~]{1,256}")
_ORIGIN = re.compile(r"https?://[a-z0-9.-]+(:[0-9]{1,5})?|https?://\[[0-9a-f:.]+\](:[0-9]{1,5})?")
_HOST = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_ALIAS_CHARACTERS = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """What `borrador serve` can be told, the engine aside; checked when built.

    Args:
        host: the address to listen on; anything but a loopback address needs an API key, or `insecure`.
        port: to listen on; 0 takes a free one.
        alias: the model's name for clients; None takes that of its file.
        api_keys: whoever sends one of them may use the server; with none everybody may.
        insecure: listen on another than a loopback address without an API key all the same.
        allowed_origins: pages of these origins, such as `https://chat.example.org`, may use the server from a browser.
        allowed_hosts: names besides the loopback ones that clients may call the server by.
        concurrent: requests written at a time.
        waiting: further requests that may wait for their turn; those beyond are refused with 429.
        cache_bytes: memory for keys and values; None decides by what is free.
        connections: open at a time; those beyond are refused with 503.
        body_bytes: of a request, at most.
        header_bytes: of a request, its first line included, at most.
        json_depth: levels of nesting in a request's body, at most.
        completions: answers to one request (`n`), at most.
        stop_strings: of a request, at most.
        stop_characters: of each, at most.
        logit_biases: tokens that a request gives a bias, at most.
        top_logprobs: likeliest tokens that a request may ask for at each position, at most.
        schema_bytes: of the JSON schema of an answer or a tool, at most.
        schema_depth: its levels of nesting, at most.
        unsent_bytes: of an answer that its client does not read, at most; then it is cancelled.
        header_timeout_s: for a request's header to arrive.
        body_timeout_s: for its body to arrive.
        idle_timeout_s: how long a connection may stay open between requests.
        request_timeout_s: for an answer to be written; then it ends as it is.
        ping_s: a stream in which nothing happens shows a sign of life as often.
        drain_s: for running answers to end before the server does.
        stream_pacing: when tokens are sent. `none` as they come, all of a round at once; `token` one at a time, spread
            over the time of a round; `fixed-interval` at fixed intervals, so that packets tell nothing about drafts.
        pacing_s: the fixed interval.

    Raises:
        UsageError: a value breaks its rule.
    """

    host: str = "127.0.0.1"
    port: int = 8080
    alias: str | None = None
    api_keys: tuple[str, ...] = field(default=(), repr=False)
    insecure: bool = False
    allowed_origins: tuple[str, ...] = ()
    allowed_hosts: tuple[str, ...] = ()
    concurrent: int = 64
    waiting: int = 64
    cache_bytes: int | None = None
    connections: int = 1024
    body_bytes: int = 2 * _MIB
    header_bytes: int = 16384
    json_depth: int = 64
    completions: int = 8
    stop_strings: int = 8
    stop_characters: int = 256
    logit_biases: int = 1024
    top_logprobs: int = MAX_LOGPROBS
    schema_bytes: int = 32768
    schema_depth: int = 16
    unsent_bytes: int = _MIB
    header_timeout_s: float = 10.0
    body_timeout_s: float = 30.0
    idle_timeout_s: float = 30.0
    request_timeout_s: float = 600.0
    ping_s: float = 10.0
    drain_s: float = 30.0
    stream_pacing: StreamPacing = "none"
    pacing_s: float = 0.05

    def __post_init__(self) -> None:
        for name, low, high in _INTEGERS:
            object.__setattr__(self, name, integer(name, getattr(self, name), low, high))
        for name, (shortest, longest) in SECONDS.items():
            object.__setattr__(self, name, number(name, getattr(self, name), shortest, longest))
        if self.cache_bytes is not None:
            object.__setattr__(self, "cache_bytes", integer("cache_bytes", self.cache_bytes, _MIB, 2**50))
        if self.stream_pacing not in STREAM_PACING:
            modes = ", ".join(STREAM_PACING)
            raise UsageError(f"stream_pacing must be one of {modes}, got {self.stream_pacing!r:.40}", "Choose one.")
        _check_alias(self.alias)
        object.__setattr__(self, "api_keys", tuple(_keys(self.api_keys)))
        object.__setattr__(self, "allowed_origins", tuple(_origins(self.allowed_origins)))
        object.__setattr__(self, "allowed_hosts", tuple(_hosts(self.allowed_hosts)))
        self._check_address()

    @property
    def is_public(self) -> bool:
        """Whether other machines may reach the address it listens on."""
        return not is_loopback(self.host)

    def _check_address(self) -> None:
        if not isinstance(self.host, str) or not self.host or not is_unicode(self.host):
            raise UsageError(f"host must be an address or a name, got {self.host!r:.80}", "Give one, such as 0.0.0.0.")
        flag("insecure", self.insecure)
        if self.is_public and not self.api_keys and not self.insecure:
            raise UsageError(
                f"host {self.host!s:.80} can be reached from other machines and needs an API key, none is given",
                "Set BORRADOR_API_KEY or --api-key-file; --insecure does without.",
            )


def is_loopback(host: str) -> bool:
    """Whether this address or name, as in `Host` without its port, is this machine's own."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower().rstrip(".") == "localhost"


def _texts(name: str, given: Any) -> Iterator[str]:
    if isinstance(given, str) or not isinstance(given, list | tuple):
        raise UsageError(f"{name} must be a list of texts, got one {type(given).__name__}", "Give a list of strings.")
    for text in given:
        if not isinstance(text, str):
            raise UsageError(f"every one of {name} must be text, got {type(text).__name__}", "Give a list of strings.")
        yield text


def _keys(given: Any) -> Iterator[str]:
    """The keys; what is said of a wrong one does not show it."""
    for key in _texts("api_keys", given):
        if not _KEY.fullmatch(key):
            raise UsageError(
                f"an API key must be 1 to 256 visible ASCII characters, one has {len(key)} or others",
                "Write it without blanks.",
            )
        yield key


def _origins(given: Any) -> Iterator[str]:
    for origin in _texts("allowed_origins", given):
        lowered = origin.lower()
        if not _ORIGIN.fullmatch(lowered):
            raise UsageError(
                f"an allowed origin must be http(s)://NAME[:PORT] without a path, got {origin!r:.80}",
                "Name each one, such as https://chat.example.org; there is no wildcard.",
            )
        yield lowered


def _hosts(given: Any) -> Iterator[str]:
    for host in _texts("allowed_hosts", given):
        lowered = host.lower().rstrip(".")
        if not _HOST.fullmatch(lowered):
            raise UsageError(
                f"an allowed host must be a name without port, got {host!r:.80}",
                "Name each one, such as llm.example.org; there is no wildcard.",
            )
        yield lowered


def _check_alias(alias: Any) -> None:
    fits = alias is None or (isinstance(alias, str) and 0 < len(alias) <= _ALIAS_CHARACTERS and alias.isprintable())
    if not fits or alias == "":
        raise UsageError(
            f"alias must be 1 to {_ALIAS_CHARACTERS} printable characters, got {alias!r:.80}", "Choose another name."
        )
