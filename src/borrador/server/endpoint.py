"""An endpoint whose answers are written by the model: from the body of a request to the last byte of the response."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from pydantic import BaseModel
from starlette.requests import Request as HttpRequest
from starlette.types import Receive, Scope, Send

from borrador.engine.member import Request
from borrador.engine.prompts import Prompt
from borrador.engine.requests import Drafting
from borrador.errors import ContextLengthError, UsageError
from borrador.server.answers import ClientGoneError
from borrador.server.bridge import Bridge, Served
from borrador.server.choice import Manner, Piece
from borrador.server.chunks import Chunks, Head
from borrador.server.errors import ApiError, as_api_error
from borrador.server.logprobs import TokenNames
from borrador.server.sampling import blame, check_limits
from borrador.server.schemas import AnswerRequest
from borrador.server.telling import Next, Observer, Telling
from borrador.server.validation import read_request
from borrador.types import SamplingParams

Body = TypeVar("Body", bound=AnswerRequest)
Read = TypeVar("Read", bound=BaseModel)
Pace = Callable[[Next], Next]

_LARGE_BODY = 1 << 16  # bytes; reading more than that would keep others waiting


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a request asks for.

    Attributes:
        prompts: to be answered, each as often as the request says.
        max_tokens: that the request names for an answer; None where it names none.
        params: of the answers.
        drafting: of the answers.
        manner: in which they are told.
    """

    prompts: Sequence[Prompt]
    max_tokens: int | None
    params: SamplingParams
    drafting: Drafting = field(default_factory=Drafting)
    manner: Manner = field(default_factory=Manner)


class Form(Protocol[Body]):
    """What is particular to an endpoint.

    Attributes:
        body: the kind of request.
        prompt_field: names the prompt.
        id_prefix: of answers.
        kind: of answers, as an object.
    """

    body: type[Body]
    prompt_field: str
    id_prefix: str
    kind: str

    def count(self, body: Body) -> int:
        """How many answers are asked for."""

    def plan(self, body: Body, served: Served, /) -> Plan:
        """What is asked for; may take a while. Raises ApiError where that is not possible."""

    def chunks(self, head: Head, names: TokenNames, *, counts: bool) -> Chunks:
        """Writes a stream."""

    def choice(self, names: TokenNames, index: int, piece: Piece) -> dict[str, Any]:
        """An answer as JSON."""


class AnswerEndpoint(Generic[Body]):
    """An ASGI app for one path.

    Args:
        form: of requests and responses.
        bridge: to what writes.
        observer: told of every answer.
        pace: decides when the steps of a stream are told; None tells them as they come.
    """

    def __init__(
        self, form: Form[Body], bridge: Bridge, observer: Observer | None = None, pace: Pace | None = None
    ) -> None:
        self._form = form
        self._bridge = bridge
        self._observer = observer
        self._pace = pace

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_begun = False

        async def note(message: Any) -> None:
            nonlocal is_begun
            is_begun = True
            await send(message)

        try:
            await self._serve(HttpRequest(scope, receive), note)
        except ClientGoneError:
            return
        except Exception as error:
            if is_begun:
                raise
            await as_api_error(error).response()(scope, receive, send)

    async def _serve(self, http: HttpRequest, send: Send) -> None:
        body = await read_body(http, self._form.body, self._bridge)
        served = self._bridge.served
        require_model(body.model, served)
        check_limits(body, self._bridge.config)
        count = self._form.count(body)
        async with self._bridge.admit(count, namespace_of(http)) as answers:
            answers.watch(http.receive)
            plan, requests = await answers.prepare(partial(self._prepare, body, served))
            answers.submit(requests, plan.manner.logprobs)
            names = TokenNames(served.llm.tokenizer)
            choices = plan.manner.choices(count, served.llm.tokenizer, names)
            telling = Telling(answers, choices, len(plan.prompts), self._observer)
            head = Head(self._form.id_prefix, served.name)
            try:
                if body.stream:
                    counts = body.stream_options is not None and bool(body.stream_options.include_usage)
                    after = answers.next if self._pace is None else self._pace(answers.next)
                    await telling.stream(send, self._form.chunks(head, names, counts=counts), after, counts=counts)
                else:
                    await telling.whole(send, head.as_json(self._form.kind), partial(self._form.choice, names))
            except asyncio.CancelledError:
                if answers.is_gone:  # so that it need not be waited for
                    raise ClientGoneError from None
                raise
            finally:
                telling.close()

    def _prepare(self, body: Body, served: Served) -> tuple[Plan, list[Request]]:
        """Blocking work, on a thread of its own: templates, tokens, grammars."""
        plan = self._form.plan(body, served)
        every = [(prompt, index) for prompt in plan.prompts for index in range(body.n or 1)]
        return plan, [self._prepare_one(prompt, index, plan, served) for prompt, index in every]

    def _prepare_one(self, prompt: Prompt, index: int, plan: Plan, served: Served) -> Request:
        limit = served.llm.context_length
        try:
            request = served.scheduler.prepare(prompt, plan.params.for_completion(index), plan.drafting)
        except ContextLengthError as error:
            raise self._too_long(str(error)) from None
        except UsageError as error:
            raise blame(error, self._form.body) from None
        asked = len(request.prompt) + (plan.max_tokens or 0)
        if asked > limit:
            raise self._too_long(
                f"prompt and answer must fit into {limit} tokens, the prompt has {len(request.prompt)} and up to"
                f" {plan.max_tokens} are requested"
            )
        return request

    def _too_long(self, rule: str) -> ApiError:
        return ApiError(400, f"{rule}.", param=self._form.prompt_field, code="context_length_exceeded")


async def read_body(http: HttpRequest, kind: type[Read], bridge: Bridge) -> Read:
    """The body of a request. Errors as for `read_request`."""
    data = await http.body()
    read = partial(read_request, kind, data, bridge.config.json_depth)
    return await bridge.work(read) if len(data) > _LARGE_BODY else read()


def require_model(name: str | None, served: Served) -> None:
    """Raise ApiError where a request names another model than the one that is served."""
    if name not in (None, "default", served.name):
        message = f"This server has the model {served.name!r}, not {name!r:.200}."
        raise ApiError(404, message, param="model", code="model_not_found")


def namespace_of(http: HttpRequest) -> str:
    """Whose the request is."""
    return str(http.scope.get("state", {}).get("namespace", ""))
