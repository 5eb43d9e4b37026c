"""Answers by a server."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from borrador.chat.backend import Figures, Span
from borrador.chat.settings import Settings
from borrador.chat.tally import Tally
from borrador.errors import UsageError
from borrador.remote.address import Address
from borrador.remote.chunks import Chunk, ChunkReader, number, split_lines
from borrador.remote.connection import describe_failure
from borrador.remote.discovery import SpeculativeField, probe_speculation
from borrador.remote.refusal import RefusedError, refusal
from borrador.remote.request import chat_body
from borrador.types import Message

if TYPE_CHECKING:
    import httpx

_MAX_ERROR_BYTES = 1 << 16


class ServerBackend:
    """Answers by a model behind the OpenAI API.

    Args:
        client: closed by whoever opened it.
        address: of the server.
        model: by the server's name for it.
    """

    context_length: int | None = None

    def __init__(self, client: httpx.Client, address: Address, model: str) -> None:
        self._client = client
        self._address = address
        self._model = model
        self._speculative: SpeculativeField | None = None  # None: not asked yet
        self._counts_usage = True

    @property
    def name(self) -> str:
        return f"{self._model} at {self._address.base}"

    @property
    def tells_origins(self) -> bool:
        return self._probe() == "understood"

    def require(self, settings: Settings) -> None:
        if _speculative(settings, trace=False) is not None and self._probe() != "understood":
            raise UsageError(
                f"this server cannot be told how to draft: the field speculative is {self._probe()}",
                "Leave /draft and acceptance at auto.",
            )

    def answer(self, messages: Sequence[Message], settings: Settings, *, origins: bool) -> ServerReply:
        speculative = _speculative(settings, trace=origins and self.tells_origins)
        body = chat_body(self._model, messages, settings.sampling, speculative, usage=self._counts_usage)
        try:
            return self._post(body)
        except RefusedError as error:
            if not self._counts_usage or not error.names("stream_options"):
                raise
        self._counts_usage = False
        del body["stream_options"]
        return self._post(body)

    def _post(self, body: Mapping[str, Any]) -> ServerReply:
        import httpx

        start = time.perf_counter()
        request = self._client.build_request("POST", f"{self._address.base}/chat/completions", json=body)
        try:
            response = self._client.send(request, stream=True)
        except httpx.HTTPError as error:
            raise describe_failure(self._address, error) from error
        if response.status_code != 200:
            raise self._refused(response)
        return ServerReply(response, self._address, start, self._plain_speed)

    def _refused(self, response: httpx.Response) -> Exception:
        import httpx

        content = b""
        with suppress(httpx.HTTPError):
            for part in response.iter_bytes():
                content += part
                if len(content) > _MAX_ERROR_BYTES:
                    break
        response.close()
        return refusal(self._address.base, response.status_code, content, response.headers.get("retry-after"))

    def _probe(self) -> SpeculativeField:
        if self._speculative is None:
            self._speculative = probe_speculation(self._client, self._address, self._model)
        return self._speculative

    def _plain_speed(self) -> float | None:
        """Tokens per second without drafts as this server has measured them; None where it does not say."""
        import httpx

        try:
            figures = self._client.get(f"{self._address.base}/borrador/stats", timeout=2.0).json()
        except (httpx.HTTPError, ValueError, RecursionError):
            return None
        return number(figures, "tokens_per_second_plain") if isinstance(figures, dict) else None


class ServerReply:
    """An answer of a server; in each step what an event brought.

    Args:
        response: of which nothing was read yet.
        address: of the server.
        start: when the question was sent.
        plain_speed: asks for the server's speed without drafts.
    """

    def __init__(
        self, response: httpx.Response, address: Address, start: float, plain_speed: Callable[[], float | None]
    ) -> None:
        self._response = response
        self._address = address
        self._plain_speed = plain_speed
        self._tally = Tally(start)
        self._steps = self._read()

    def __iter__(self) -> ServerReply:
        return self

    def __next__(self) -> list[Span]:
        return next(self._steps)

    @property
    def figures(self) -> Figures:
        return self._tally.figures

    def close(self) -> None:
        self._steps.close()
        self._response.close()

    def _read(self) -> Generator[list[Span], None, None]:
        reader = ChunkReader()
        for line in self._lines():
            chunk = reader.read(line)
            if chunk is None:
                continue
            self._tally.add(chunk)
            if chunk.text:
                yield _spans(chunk)
        reader.require_end()
        if self._tally.drafted:
            self._tally.plain_speed = self._plain_speed()

    def _lines(self) -> Iterator[str]:
        import httpx

        try:
            yield from split_lines(self._response.iter_bytes())
        except httpx.HTTPError as error:
            raise describe_failure(self._address, error) from error


def _speculative(settings: Settings, *, trace: bool) -> dict[str, Any] | None:
    """The request's object of that name; None where nothing is asked for, so that any server understands it."""
    drafting, acceptance = settings.drafting, settings.sampling.acceptance
    fixed = drafting.draft_tokens is not None
    asked: dict[str, Any] = {
        **({} if drafting.speculate else {"enabled": False}),
        **({"enabled": True, "draft_tokens": drafting.draft_tokens} if fixed else {}),
        **({"acceptance": acceptance} if acceptance != "auto" else {}),
        **({"trace": True} if trace else {}),
    }
    return asked or None


def _spans(chunk: Chunk) -> list[Span]:
    """Its tokens, where the server tells them and they are the text."""
    if "".join(text for text, _ in chunk.tokens) == chunk.text:
        return [Span(*token) for token in chunk.tokens]
    return [Span(chunk.text)]
