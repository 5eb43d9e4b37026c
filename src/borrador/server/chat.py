"""`/v1/chat/completions`."""

from __future__ import annotations

import json
from typing import Any

from borrador.server.bridge import Served
from borrador.server.choice import Manner, Piece
from borrador.server.chunks import ChatChunks, Head
from borrador.server.config import ServerConfig
from borrador.server.conversation import as_turns
from borrador.server.endpoint import Plan
from borrador.server.errors import refusal
from borrador.server.logprobs import TokenNames
from borrador.server.sampling import check_schema_limits, check_top_logprobs, drafting_of, sampling_params
from borrador.server.schemas_chat import ChatRequest, JsonSchemaFormat
from borrador.server.toolbox import Toolbox


class ChatForm:
    """What is particular to chats.

    Args:
        config: the server's limits.
    """

    body = ChatRequest
    prompt_field = "messages"
    id_prefix = "chatcmpl"
    kind = "chat.completion"

    def __init__(self, config: ServerConfig) -> None:
        self._config = config

    def count(self, body: ChatRequest) -> int:
        return body.n or 1

    def plan(self, body: ChatRequest, served: Served) -> Plan:
        llm, logprobs = served.llm, self._logprobs(body)
        toolbox = Toolbox(body, llm, self._config)
        shape = self._format(body)
        if shape and toolbox.names:
            raise refusal("response_format must be text when a tool may be called.", "response_format")
        shape |= toolbox.shape()
        max_tokens = self._max_tokens(body)
        params = sampling_params(body, max_tokens or llm.context_length, logprobs, shape)
        traces = body.speculative is not None and bool(body.speculative.trace)
        if traces and toolbox.names:
            raise refusal("speculative.trace must be false when a tool may be called.", "speculative.trace")
        return Plan(
            prompts=[llm.template.render(as_turns(body.messages), tools=toolbox.offered)],
            max_tokens=max_tokens,
            params=params,
            drafting=drafting_of(body),
            manner=Manner(
                logprobs=logprobs,
                traces=traces,
                tools=toolbox.names,
                syntax=toolbox.syntax,
                streams=bool(body.stream),
            ),
        )

    def chunks(self, head: Head, names: TokenNames, *, counts: bool) -> ChatChunks:
        return ChatChunks(head, names, counts=counts)

    def choice(self, names: TokenNames, index: int, piece: Piece) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": piece.text or (None if piece.calls else "")}
        if piece.calls:
            message["tool_calls"] = [call.as_json() for call in piece.calls]
        return {
            "index": index,
            "message": {**message, "refusal": None},
            "logprobs": None if piece.logprobs is None else names.as_chat(piece.logprobs),
            "finish_reason": piece.finish_reason,
            **({} if piece.trace is None else {"speculative": piece.trace}),
        }

    def _logprobs(self, body: ChatRequest) -> int | None:
        top = body.top_logprobs
        if top is not None and not body.logprobs:
            raise refusal("top_logprobs must come with logprobs: true.", "top_logprobs")
        return check_top_logprobs(top or 0, self._config, "top_logprobs") if body.logprobs else None

    def _max_tokens(self, body: ChatRequest) -> int | None:
        one, other = body.max_tokens, body.max_completion_tokens
        if one is not None and other is not None and one != other:
            raise refusal(f"max_tokens must equal max_completion_tokens, got {one} and {other}.", "max_tokens")
        return one if one is not None else other

    def _format(self, body: ChatRequest) -> dict[str, str]:
        asked = body.response_format
        if asked is None or asked.type == "text":
            return {}
        if not isinstance(asked, JsonSchemaFormat):
            return {"json_schema": '{"type": "object"}'}
        schema = asked.json_schema.schema_
        check_schema_limits(schema, self._config, "response_format.json_schema.schema")
        return {"json_schema": json.dumps(schema)}
