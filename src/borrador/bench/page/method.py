"""How a benchmark was measured, in sentences."""

from __future__ import annotations

from borrador.bench.record import Record, Settings

_STARTS = {
    "carried": "What drafters learnt from a prompt helped with the prompts after it, as it does for a user.",
    "cold": "Drafters forgot all they had learnt before every prompt.",
}


_SPEEDS = (
    "Speeds of a task are all its tokens divided by all its seconds, so that long answers weigh more. The median is"
    " that of the prompts' own speed-ups, where all weigh alike; its interval holds it with 95 % confidence"
    " (percentile bootstrap over prompts)."
)
_EXTENT = (
    "Decoding leaves out the prompt's own pass and the first token, which comes from it. End to end counts both; no run"
    " found anything of its prompt in a cache."
)


def describe_method(record: Record) -> list[str]:
    """A sentence or two about each choice that the numbers depend on."""
    settings = record.settings
    return [_order(settings), _choice(settings), _start(settings), _SPEEDS, _EXTENT]


def _order(settings: Settings) -> str:
    return (
        f"Every prompt of {settings.prompts} was answered {_times(settings.repeats)}, plainly and with speculation, in"
        " turns of a round each; which of the two began alternated. A short answer to another prompt came before all of"
        " them and does not count."
    )


def _times(repeats: int) -> str:
    return "once" if repeats == 1 else f"{repeats} times"


def _choice(settings: Settings) -> str:
    if settings.temperature == 0.0:
        return "Decoding was greedy. Answers must be equal, token for token."
    drawn = f"Tokens were drawn at temperature {settings.temperature:g}"
    if settings.seed is not None:
        return f"{drawn} with the seed {settings.seed}. Answers must be equal, token for token."
    return f"{drawn} without a seed, so that answers differ and are not compared."


def _start(settings: Settings) -> str:
    if settings.start != "warm":
        return _STARTS[settings.start]
    return (
        f"Drafters knew what {len(settings.warm_up_prompts)} other prompts had taught them, which were answered before"
        " and are not measured, and forgot the measured ones."
    )
