"""A server that speaks the OpenAI API over a real socket and writes a fixed answer, as slowly and badly as asked."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Literal

TOKENS = (("The", "target"), (" capital", "draft"), (" is", "draft"), (" Rome", "bonus"), (".", "target"))
TEXT = "".join(text for text, _ in TOKENS)
TIMINGS = {"predicted_per_second": 50.0, "draft_n": 4, "draft_n_accepted": 3}


@dataclass
class Behaviour:
    """How the server behaves; a test may change it at any time.

    Attributes:
        models: that it lists.
        tokens: of every answer, each with its origin; one event each.
        plain_tokens: of answers without speculation, where they differ.
        first_s: before the first token.
        token_s: before each of the others.
        usage: whether it tells the count of tokens.
        timings: at the end of an answer.
        speculative: what it does with that field.
        busy: numbers of the requests that get a 429, counted from 0.
        dropped: numbers of the requests whose connection breaks in the middle of the answer.
        fails_inside: numbers of the requests whose answer ends with an error event.
        refuses: a field that it refuses.
        context_tokens: a longer prompt, counted in words, is refused.
        api_key: that it wants.
        plain_tok_s: what it has measured without drafts.
    """

    models: Sequence[str] = ("tiny",)
    tokens: Sequence[tuple[str, str]] = TOKENS
    plain_tokens: Sequence[tuple[str, str]] | None = None
    first_s: float = 0.0
    token_s: float = 0.0
    usage: bool = True
    timings: Mapping[str, Any] = field(default_factory=lambda: TIMINGS)
    speculative: Literal["understood", "refused", "ignored"] = "understood"
    busy: frozenset[int] = frozenset()
    dropped: frozenset[int] = frozenset()
    fails_inside: frozenset[int] = frozenset()
    refuses: str = ""
    context_tokens: int = 1000
    api_key: str | None = None
    plain_tok_s: float | None = 25.0


class ApiServer:
    """The server, on a free port of this machine while the context lasts.

    Attributes:
        asked: the bodies of all requests for an answer with streaming.
        most_at_once: how many of them were answered at the same time.
        left: how many clients went away in the middle of an answer.
    """

    def __init__(self, behaviour: Behaviour | None = None) -> None:
        self.behaviour = behaviour or Behaviour()
        self.asked: list[dict[str, Any]] = []
        self.most_at_once = self.left = self._now = 0
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> ApiServer:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @contextlib.contextmanager
    def count(self, body: dict[str, Any]) -> Iterator[int]:
        """The number of a request; it is being answered while the context lasts."""
        with self._lock:
            number = len(self.asked)
            self.asked.append(body)
            self._now += 1
            self.most_at_once = max(self.most_at_once, self._now)
        try:
            yield number
        except OSError:
            self.left += 1
        finally:
            with self._lock:
                self._now -= 1


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that go away are part of the tests."""


def _handler(server: ApiServer) -> type[BaseHTTPRequestHandler]:
    class Handler(_Handler):
        api = server

    return Handler


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    api: ApiServer

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the base class names it so)
        pass

    def do_GET(self) -> None:
        behaviour = self.api.behaviour
        if not self._admitted():
            return
        if self.path == "/v1/models":
            self._send(200, {"object": "list", "data": [{"id": name} for name in behaviour.models]})
        elif self.path == "/v1/borrador/stats" and behaviour.plain_tok_s is not None:
            self._send(200, {"tokens_per_second_plain": behaviour.plain_tok_s})
        else:
            self._send(404, {"error": {"message": "not found"}})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not self._admitted() or self._refused(body):
            return
        if not body.get("stream"):
            self._send(200, {"choices": [{"message": {"content": "The"}, "finish_reason": "length"}]})
            return
        with self.api.count(body) as number:
            if number in self.api.behaviour.busy:
                error = {"message": "the queue is full", "type": "rate_limit"}
                self._send(429, {"error": error}, {"Retry-After": "0.01"})
            else:
                self._stream(body, number)

    def _admitted(self) -> bool:
        key = self.api.behaviour.api_key
        if key is not None and self.headers["Authorization"] != f"Bearer {key}":
            self._send(401, {"error": {"message": "the API key is missing or wrong"}})
            return False
        return True

    def _refused(self, body: Mapping[str, Any]) -> bool:
        behaviour, field_given = self.api.behaviour, body.get("speculative")
        words = sum(len(message["content"].split()) for message in body["messages"])
        error: dict[str, Any] | None = None
        if behaviour.refuses and behaviour.refuses in body:
            error = {"message": f"unknown field {behaviour.refuses}", "param": behaviour.refuses}
        elif field_given is not None and behaviour.speculative == "refused":
            error = {"message": "unknown field", "param": "speculative"}
        elif field_given is not None and behaviour.speculative == "understood" and _is_wrong(field_given):
            error = {"message": "speculative.enabled must be true or false", "param": "speculative.enabled"}
        elif words > behaviour.context_tokens:
            message = f"the prompt has {words} tokens, and the context {behaviour.context_tokens}"
            error = {"message": message, "code": "context_length_exceeded"}
        if error is not None:
            self._send(400, {"error": error})
        return error is not None

    def _stream(self, body: Mapping[str, Any], number: int) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        behaviour = self.api.behaviour
        self._event(_delta({"role": "assistant", "content": ""}))
        for index, (text, origin) in enumerate(self._tokens(body)):
            time.sleep(behaviour.token_s if index else behaviour.first_s)
            if index == 2 and number in behaviour.dropped:
                self.connection.shutdown(socket.SHUT_RDWR)
                self.close_connection = True
                return
            if index == 2 and number in behaviour.fails_inside:
                self._event({"error": {"message": "out of memory"}})
                self._write(b"0\r\n\r\n")
                return
            trace = {"speculative": {"tokens": [{"text": text, "origin": origin}]}} if _traces(body) else {}
            self._event({**_delta({"content": text}), **trace})
        self._end(body)

    def _end(self, body: Mapping[str, Any]) -> None:
        count = len(self._tokens(body))
        self._event({**_delta({}, "stop"), "timings": dict(self.api.behaviour.timings)})
        if self.api.behaviour.usage and "stream_options" in body:
            usage = {"prompt_tokens": 7, "completion_tokens": count}
            self._event({"choices": [], "usage": usage})
        self._write(_chunked(b"data: [DONE]\n\n") + b"0\r\n\r\n")

    def _tokens(self, body: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
        plain = (body.get("speculative") or {}).get("enabled") is False
        behaviour = self.api.behaviour
        tokens = behaviour.plain_tokens if plain and behaviour.plain_tokens is not None else behaviour.tokens
        return tokens[: body["max_tokens"]]

    def _event(self, entry: Mapping[str, Any]) -> None:
        self._write(_chunked(b": ping\n\ndata: " + json.dumps(entry).encode() + b"\n\n"))

    def _write(self, content: bytes) -> None:
        self.wfile.write(content)
        self.wfile.flush()

    def _send(self, status: int, entry: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> None:
        content = json.dumps(entry).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self._write(content)


def _is_wrong(given: Mapping[str, Any]) -> bool:
    return not isinstance(given.get("enabled", True), bool)


def _traces(body: Mapping[str, Any]) -> bool:
    return bool((body.get("speculative") or {}).get("trace"))


def _delta(delta: Mapping[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
    return {"id": "chatcmpl-1", "choices": [{"index": 0, "delta": dict(delta), "finish_reason": finish_reason}]}


def _chunked(content: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(content), content)
