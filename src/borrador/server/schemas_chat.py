"""The body of a chat request."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from borrador.server.schemas import AnswerRequest, Body, Label, Metadata

Name = Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]{1,64}$")]
JsonObject = dict[str, Any]


class TextPart(Body):
    """A part of a message; those of other kinds than text are refused."""

    type: Literal["text"]
    text: str


Content = str | Annotated[list[TextPart], Field(min_length=1, fail_fast=True)]


class SystemMessage(Body):
    """What holds for the whole conversation."""

    role: Literal["system", "developer"]
    content: Content


class UserMessage(Body):
    """What the user says."""

    role: Literal["user"]
    content: Content


class CalledFunction(Body):
    """What was called."""

    name: Name
    arguments: str = Field(description="A JSON object.")


class ToolCall(Body):
    """A call that an answer has made."""

    id: Label
    type: Literal["function"] = "function"
    function: CalledFunction


class AssistantMessage(Body):
    """What an answer was. Fields that clients hand back from an answer may be there, but hold nothing."""

    role: Literal["assistant"]
    content: Content | None = None
    tool_calls: Annotated[list[ToolCall], Field(min_length=1, max_length=128, fail_fast=True)] | None = None
    refusal: None = None
    audio: None = None
    function_call: None = None
    annotations: Annotated[list[Any], Field(max_length=0)] | None = None


class ToolMessage(Body):
    """What a call resulted in."""

    role: Literal["tool"]
    content: Content
    tool_call_id: Label
    name: Name | None = None


Message = Annotated[SystemMessage | UserMessage | AssistantMessage | ToolMessage, Field(discriminator="role")]


class Function(Body):
    """What an answer may call."""

    name: Name
    description: str | None = None
    parameters: JsonObject | None = Field(None, description="The JSON schema of the arguments.")
    strict: bool | None = Field(None, description="Hold arguments to their schema while they are written.")


class Tool(Body):
    """A tool; there are functions only."""

    type: Literal["function"]
    function: Function


class FunctionName(Body):
    """Names a function."""

    name: Name


class NamedTool(Body):
    """The tool that must be called."""

    type: Literal["function"]
    function: FunctionName


class TextFormat(Body):
    """Answers of any form."""

    type: Literal["text"]


class JsonFormat(Body):
    """Answers that are a JSON object."""

    type: Literal["json_object"]


class JsonSchema(Body):
    """A schema with its name."""

    name: Name
    description: str | None = None
    schema_: JsonObject = Field(alias="schema")
    strict: bool | None = Field(None, description="Every schema is enforced while the answer is written.")


class JsonSchemaFormat(Body):
    """Answers that are JSON of a schema."""

    type: Literal["json_schema"]
    json_schema: JsonSchema


ResponseFormat = Annotated[TextFormat | JsonFormat | JsonSchemaFormat, Field(discriminator="type")]


class ChatRequest(AnswerRequest):
    """A conversation to be continued by the assistant."""

    messages: Annotated[list[Message], Field(min_length=1, fail_fast=True)]
    max_completion_tokens: int | None = Field(None, ge=1, le=2**31 - 1, description="The same as max_tokens.")
    logprobs: bool | None = None
    top_logprobs: int | None = Field(None, ge=0)
    response_format: ResponseFormat | None = None
    tools: Annotated[list[Tool], Field(max_length=128, fail_fast=True)] | None = None
    tool_choice: Literal["none", "auto", "required"] | NamedTool | None = None
    parallel_tool_calls: bool | None = None
    modalities: Annotated[list[Literal["text"]], Field(min_length=1, max_length=1)] | None = None
    service_tier: Literal["auto", "default"] | None = None
    store: Literal[False] | None = None
    metadata: Metadata | None = Field(None, description="Accepted; changes nothing.")
    safety_identifier: Label | None = Field(None, description="Accepted; changes nothing.")
    prompt_cache_key: Label | None = Field(None, description="Accepted; changes nothing: prompts are always cached.")
