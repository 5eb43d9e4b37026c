"""The body of a chat request: only what every server knows, unless more is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from borrador.types import Message, SamplingParams

_ALWAYS = ("temperature", "max_tokens")
_KNOWN = (
    "top_k",
    "typical_p",
    "top_p",
    "min_p",
    "repetition_penalty",
    "presence_penalty",
    "frequency_penalty",
    "penalty_window",
    "seed",
    "min_tokens",
)
_DEFAULTS = SamplingParams()


def chat_body(
    model: str,
    messages: Sequence[Message],
    params: SamplingParams,
    speculative: Mapping[str, Any] | None = None,
    *,
    usage: bool = True,
) -> dict[str, Any]:
    """What to post to `/chat/completions` for a streamed answer.

    Args:
        model: by the server's name for it.
        messages: the conversation.
        params: temperature and length are always sent, others where they are not at their defaults.
        speculative: the object of that name; None sends none.
        usage: ask for the count of tokens.
    """
    changed = {name: getattr(params, name) for name in _KNOWN if getattr(params, name) != getattr(_DEFAULTS, name)}
    return {
        "model": model,
        "messages": list(messages),
        "stream": True,
        **({"stream_options": {"include_usage": True}} if usage else {}),
        **{name: getattr(params, name) for name in _ALWAYS},
        **changed,
        **({"stop": list(params.stop)} if params.stop else {}),
        **({} if speculative is None else {"speculative": dict(speculative)}),
    }
