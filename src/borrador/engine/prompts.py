"""Lists of prompts and of their parameters, as users give them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from borrador.errors import UsageError
from borrador.types import Messages, SamplingParams


@dataclass(frozen=True, slots=True)
class TokenPrompt:
    """A prompt as the model sees it.

    Attributes:
        token_ids: all of it, a beginning token too where the model wants one.
    """

    token_ids: tuple[int, ...]


Prompt = str | Messages | TokenPrompt
ManyParams = SamplingParams | Sequence[SamplingParams | None] | None

DEFAULT_CONCURRENT = 16
MOST_CONCURRENT = 256


def pair_up(prompts: Any, params: Any) -> list[tuple[Any, Any]]:
    """Each prompt with its parameters. Whether they are prompts and parameters is looked at one by one, later.

    Args:
        prompts: a list of prompts.
        params: a list as long, or what all of them share.

    Raises:
        UsageError: it is no list, or the lists differ in length.
    """
    if not _is_list(prompts):
        raise UsageError(f"prompts must be a list of prompts, got {prompts!r:.80}", "Put a single prompt into a list.")
    if any(isinstance(prompt, Mapping) for prompt in prompts):
        raise UsageError(
            "prompts must be a list of prompts, got a list with messages in it",
            "Give a list of conversations, each of them a list of messages.",
        )
    if not _is_list(params):
        return [(prompt, params) for prompt in prompts]
    if len(params) != len(prompts):
        raise UsageError(
            f"params must be one for all prompts, or one for each of the {len(prompts)}, got {len(params)}",
            "Give as many as there are prompts.",
        )
    return list(zip(prompts, params, strict=True))


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)
