"""The bodies of requests that are about plain text: completions, and text to tokens and back."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from borrador.server.schemas import AnswerRequest, Body, Label, TokenId
from borrador.server.schemas_chat import Message

PromptIds = Annotated[list[TokenId], Field(min_length=1, fail_fast=True)]


class CompletionRequest(AnswerRequest):
    """Texts to be continued as they stand, without a chat template, or the tokens that they are."""

    prompt: (
        str
        | Annotated[list[str], Field(min_length=1, fail_fast=True)]
        | PromptIds
        | Annotated[list[PromptIds], Field(min_length=1, fail_fast=True)]
    )
    logprobs: int | None = Field(None, ge=0)
    best_of: Literal[1] | None = None
    echo: bool | None = Field(None, description="Begin each answer with its prompt.")
    suffix: None = None


class TokenizeRequest(Body):
    """A text or a conversation; exactly one of the two."""

    model: Label | None = None
    prompt: str | None = None
    messages: Annotated[list[Message], Field(min_length=1, fail_fast=True)] | None = None
    return_token_strs: bool | None = None


class DetokenizeRequest(Body):
    """Tokens to be put back into text."""

    model: Label | None = None
    tokens: Annotated[list[TokenId], Field(max_length=1 << 20, fail_fast=True)]
