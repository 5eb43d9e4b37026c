"""What the server answers, for the description of the API. Responses themselves are put together elsewhere."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

FinishReason = Literal["stop", "length", "tool_calls", "timeout"]


class Told(BaseModel):
    """An object from the server."""

    model_config = ConfigDict(protected_namespaces=())


class Fault(Told):
    """What went wrong."""

    message: str
    type: str
    param: str | None
    code: str | None


class ErrorBody(Told):
    """An error."""

    error: Fault


class CachedTokens(Told):
    """Details of a prompt."""

    cached_tokens: int


class Usage(Told):
    """Tokens that a request took."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: CachedTokens


class Timings(Told):
    """Times and speeds, by llama.cpp's names. Drafted tokens are those that were tested."""

    cache_n: int
    prompt_n: int
    prompt_ms: float
    prompt_per_second: float
    predicted_n: int
    predicted_ms: float
    predicted_per_second: float
    draft_n: int
    draft_n_accepted: int


class SpeculativeDecoding(Told):
    """Drafts, by vLLM's names. The rate is accepted / tested; the mean length is 1 + accepted / drafts."""

    num_drafts: int
    num_draft_tokens: int
    num_draft_tokens_tested: int
    num_accepted_tokens: int
    num_accepted_tokens_per_pos: list[int]
    draft_acceptance_rate: float | None
    mean_acceptance_length: float | None


class Metrics(Told):
    """What drafts did."""

    speculative_decoding: SpeculativeDecoding


class AnswerBody(Told):
    """What chats and completions have in common."""

    id: str
    created: int
    model: str
    system_fingerprint: str
    usage: Usage
    timings: Timings
    metrics: Metrics


class FunctionCall(Told):
    """What is to be called."""

    name: str
    arguments: str = Field(description="A JSON object.")


class Call(Told):
    """A call of a tool."""

    id: str
    type: Literal["function"]
    function: FunctionCall


class ChatAnswer(Told):
    """The message that answers."""

    role: Literal["assistant"]
    content: str | None
    refusal: None
    tool_calls: list[Call] = []


class ChatChoice(Told):
    """One of the answers."""

    index: int
    message: ChatAnswer
    logprobs: dict[str, Any] | None
    finish_reason: FinishReason


class ChatCompletion(AnswerBody):
    """The answers to a chat."""

    object: Literal["chat.completion"]
    choices: list[ChatChoice]


class CompletionChoice(Told):
    """One of the continuations."""

    index: int
    text: str
    logprobs: dict[str, Any] | None
    finish_reason: FinishReason


class Completion(AnswerBody):
    """The continuations of prompts."""

    object: Literal["text_completion"]
    choices: list[CompletionChoice]


class ModelCard(Told):
    """A model that is served."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str
    max_model_len: int


class ModelList(Told):
    """All models that are served."""

    object: Literal["list"]
    data: list[ModelCard]


class Tokens(Told):
    """A prompt as the model sees it."""

    tokens: list[int]
    count: int
    max_model_len: int
    token_strs: list[str] = []


class Text(Told):
    """What tokens say."""

    prompt: str


class Status(Told):
    """Whether the server can serve."""

    status: str


class Version(Told):
    """What is running."""

    version: str


class Stats(Told):
    """Counted and measured numbers of the server."""

    running: int
    waiting: int
