"""What the answers of a chat cost together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from borrador.chat.backend import Figures
from borrador.chat.chat import Chat


def summarise(chat: Chat) -> list[str]:
    """A few lines: all answers, the last one, the settings."""
    lines = [_describe_all(chat.figures), *map(_describe_last, chat.figures[-1:]), *_describe_context(chat)]
    changed = "".join(f", {name} {value}" for name, value in chat.settings.changed.items())
    return [*lines, f"drafting {chat.settings.drafting}{changed}"]


def _describe_all(figures: Sequence[Figures]) -> str:
    tokens, passes = _total(each.tokens for each in figures), _total(each.target_passes for each in figures)
    tested = _total(each.draft_tokens_tested for each in figures)
    accepted = _total(each.draft_tokens_accepted for each in figures)
    parts = [f"{len(figures)} answer{'' if len(figures) == 1 else 's'}", f"{tokens} tokens"]
    if speed := _speed(figures):
        parts.append(f"{speed:.1f} tok/s")
    if passes:
        parts.append(f"{tokens / passes:.2f} tokens per pass")
    if tested:
        parts.append(f"{100 * accepted / tested:.0f} % of {tested} tested draft tokens accepted")
    return ", ".join(parts)


def _describe_last(last: Figures) -> str:
    parts = [f"ended by {last.finish_reason}"]
    if last.prompt_tokens is not None:
        parts.append(f"{last.prompt_tokens} tokens before it")
    if last.first_token_s is not None:
        parts.append(f"first token after {last.first_token_s:.2f} s")
    return f"last answer: {', '.join(parts)}"


def _describe_context(chat: Chat) -> list[str]:
    limit, last = chat.backend.context_length, chat.figures[-1] if chat.figures else Figures()
    if limit is None or last.prompt_tokens is None or not chat.conversation.exchanges:
        return []
    return [f"context: {last.prompt_tokens + (last.tokens or 0)} of {limit} tokens"]


def _speed(figures: Iterable[Figures]) -> float | None:
    """Of all decoded tokens together; each answer's first comes out of the prompt's pass."""
    timed = [
        (each.tokens - 1, each.tokens_per_second)
        for each in figures
        if each.tokens and each.tokens > 1 and each.tokens_per_second
    ]
    seconds = sum(decoded / speed for decoded, speed in timed)
    return sum(decoded for decoded, _ in timed) / seconds if seconds else None


def _total(counts: Iterable[int | None]) -> int:
    return sum(count or 0 for count in counts)
