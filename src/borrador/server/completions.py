"""`/v1/completions`."""

from __future__ import annotations

from typing import Any

from borrador.engine.prompts import TokenPrompt
from borrador.server.bridge import Served
from borrador.server.choice import Manner, Piece
from borrador.server.chunks import Chunks, CompletionChunks, Head
from borrador.server.config import ServerConfig
from borrador.server.endpoint import Plan
from borrador.server.errors import refusal
from borrador.server.logprobs import TokenNames
from borrador.server.sampling import check_top_logprobs, drafting_of, sampling_params
from borrador.server.schemas_text import CompletionRequest

DEFAULT_MAX_TOKENS = 16  # OpenAI's


class CompletionForm:
    """What is particular to completions.

    Args:
        config: the server's limits.
    """

    body = CompletionRequest
    prompt_field = "prompt"
    id_prefix = "cmpl"
    kind = "text_completion"

    def __init__(self, config: ServerConfig) -> None:
        self._config = config

    def count(self, body: CompletionRequest) -> int:
        prompts = len(_prompts(body))
        count = prompts * (body.n or 1)
        if prompts > 1 and count > self._config.completions:
            rule = f"prompt must ask for at most {self._config.completions} answers, n counted, got {count}."
            raise refusal(rule, "prompt", "invalid_value")
        return count

    def plan(self, body: CompletionRequest, served: Served) -> Plan:
        prompts = _prompts(body)
        logprobs = body.logprobs
        if logprobs is not None:
            logprobs = check_top_logprobs(logprobs, self._config, "logprobs")
        if body.echo and logprobs is not None:
            raise refusal("echo must be false when logprobs are requested: a prompt has none here.", "echo")
        if body.speculative is not None and body.speculative.trace:
            raise refusal("speculative.trace works for chats only.", "speculative.trace", "unsupported_parameter")
        max_tokens = DEFAULT_MAX_TOKENS if body.max_tokens is None else body.max_tokens
        return Plan(
            prompts=prompts,
            max_tokens=body.max_tokens,
            params=sampling_params(body, max_tokens, logprobs, {}),
            drafting=drafting_of(body),
            manner=Manner(logprobs=logprobs, echoes=[_text(each, served) for each in prompts] if body.echo else ()),
        )

    def chunks(self, head: Head, names: TokenNames, *, counts: bool) -> Chunks:
        return CompletionChunks(head, names, counts=counts)

    def choice(self, names: TokenNames, index: int, piece: Piece) -> dict[str, Any]:
        return {
            "index": index,
            "text": piece.text,
            "logprobs": None if piece.logprobs is None else names.as_completion(piece.logprobs, 0),
            "finish_reason": piece.finish_reason,
        }


def _prompts(body: CompletionRequest) -> list[str | TokenPrompt]:
    given: Any = body.prompt
    is_one = isinstance(given, str) or isinstance(given[0], int)
    return [each if isinstance(each, str) else TokenPrompt(tuple(each)) for each in ([given] if is_one else given)]


def _text(prompt: str | TokenPrompt, served: Served) -> str:
    if isinstance(prompt, str):
        return prompt
    ids = [token for token in prompt.token_ids if token < served.llm.tokenizer.vocabulary_size]  # others are refused
    return served.llm.tokenizer.spell(ids)
