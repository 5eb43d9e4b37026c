"""What requests for answers have in common. A field means what OpenAI's reference says, else what is written here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from borrador.params import Acceptance

MAX_BIASES = 1024
_INT32 = 2**31 - 1
_LABEL_CHARACTERS = 4096

TokenId = Annotated[int, Field(ge=0, le=_INT32)]
TokenIds = Annotated[list[TokenId], Field(max_length=4096, fail_fast=True)]
Texts = Annotated[list[str], Field(fail_fast=True)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Label = Annotated[str, Field(max_length=_LABEL_CHARACTERS)]


def at_most(most: int) -> Callable[[Any], Any]:
    """A check of how many keys an object has, made before any of them is looked at."""

    def check(value: Any) -> Any:
        if isinstance(value, dict) and len(value) > most:
            raise ValueError(f"must have at most {most} keys")
        return value

    return check


Metadata = Annotated[dict[str, Label], Field(max_length=64), BeforeValidator(at_most(64))]
Bias = Annotated[Finite, Field(ge=-100, le=100)]
Biases = Annotated[dict[str, Bias], Field(max_length=MAX_BIASES), BeforeValidator(at_most(MAX_BIASES))]


class Body(BaseModel):
    """A JSON object from a client: its types are taken at their word, and it has no other fields."""

    model_config = ConfigDict(strict=True, extra="forbid", protected_namespaces=())

    _few_keys = model_validator(mode="before")(at_most(64))


class StreamOptions(Body):
    """What a stream holds beside the answer."""

    include_usage: bool | None = Field(None, description="Send a last chunk with the usage of tokens.")
    include_obfuscation: Literal[False] | None = Field(
        None, description="Padding is not sent; see the option --stream-pacing of the server."
    )


class Speculative(Body):
    """How the answer is drafted, which changes its speed alone."""

    enabled: bool | None = Field(None, description="false decodes plainly, without drafters.")
    draft_tokens: int | None = Field(
        None, ge=0, le=64, description="Tokens drafted each round; null is as the server was started."
    )
    acceptance: Acceptance | None = Field(None, description="How drafts are judged at a temperature above 0.")
    trace: bool | None = Field(None, description="Tell in every chunk of a chat where each token came from.")


class AnswerRequest(Body):
    """Fields of chats and completions alike. Null is the same as leaving a field out."""

    model: Label | None = Field(None, description='The name that the server goes by, or "default".')
    n: int | None = Field(None, ge=1, description="Answers to write; 1 by default.")
    max_tokens: int | None = Field(None, ge=1, le=_INT32, description="The most tokens of an answer.")
    temperature: Finite | None = Field(None, ge=0, le=2, description="1 by default; 0 is greedy.")
    top_p: Finite | None = Field(None, gt=0, le=1)
    top_k: int | None = Field(None, ge=0, le=_INT32, description="Keep the k most likely tokens; 0 keeps all.")
    min_p: Finite | None = Field(None, ge=0, lt=1, description="Drop tokens less likely than this part of the best.")
    typical_p: Finite | None = Field(None, gt=0, le=1)
    repetition_penalty: Finite | None = Field(None, ge=0.01, le=10)
    presence_penalty: Finite | None = Field(None, ge=-2, le=2)
    frequency_penalty: Finite | None = Field(None, ge=-2, le=2)
    penalty_window: int | None = Field(None, ge=-1, le=_INT32, description="Last tokens that penalties look at.")
    logit_bias: Biases | None = None
    allowed_token_ids: Annotated[TokenIds, Field(min_length=1)] | None = None
    banned_token_ids: TokenIds | None = None
    stop: str | Texts | None = Field(None, description="Texts that end the answer.")
    stop_token_ids: TokenIds | None = None
    min_tokens: int | None = Field(None, ge=0, le=_INT32)
    ignore_eos: bool | None = None
    seed: int | None = Field(
        None, ge=-(2**63), lt=2**64, description="Equal seeds give equal answers; a negative one counts modulo 2^64."
    )
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    speculative: Speculative | None = None
    user: Label | None = Field(None, description="Accepted; changes nothing.")
