"""Options that several commands share. Their defaults are the library's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, TypeVar

import typer

from borrador.cli.completion import complete_drafter, complete_history, complete_model, complete_words
from borrador.config import DRAFT_WEIGHTS, DraftWeights, EngineConfig
from borrador.models.catalogue import DEFAULT_MODEL
from borrador.params import ACCEPTANCE, Acceptance, SamplingParams

Word = TypeVar("Word", bound=str)

MODEL = DEFAULT_MODEL
SAMPLING = SamplingParams()
ENGINE = EngineConfig()


def parse_count(text: str | int) -> int:
    """A whole number; a final `k` multiplies it by 1024."""
    digits, factor = (text[:-1], 1024) if isinstance(text, str) and text[-1:] in ("k", "K") else (text, 1)
    try:
        return int(digits) * factor
    except ValueError:
        raise typer.BadParameter(f"{text!r:.40} is not a whole number (8192 and 8k are)") from None


def parse_integer(text: str | int) -> int:
    try:
        return int(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r:.40} is not a whole number") from None


def at_least(low: int) -> Callable[[str | int], int]:
    """A reader of whole numbers that refuses those below `low`."""

    def parse(text: str | int) -> int:
        number = parse_count(text)
        if number < low:
            raise typer.BadParameter(f"must be at least {low}, got {number}")
        return number

    return parse


def within(low: int, high: int) -> Callable[[str | int], int]:
    """A reader of whole numbers that refuses those outside of the limits."""

    def parse(text: str | int) -> int:
        number = parse_count(text)
        if not low <= number <= high:
            raise typer.BadParameter(f"must be from {low} to {high}, got {number}")
        return number

    return parse


def parse_shortlist(text: str | int) -> int | None:
    """How many tokens: 0 for all of them (`off`), None for what the draft model's weights say (`auto`)."""
    named = {"auto": None, "off": 0}
    try:
        return named[text] if isinstance(text, str) and text in named else parse_count(text)
    except typer.BadParameter:
        raise typer.BadParameter(f"{text!r:.40} is not a whole number, auto or off") from None


def parse_draft_weights(text: str) -> DraftWeights:
    return parse_word(text, DRAFT_WEIGHTS)


def parse_number(text: str | float) -> float:
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r:.40} is not a number") from None


def parse_word(text: str, words: Sequence[Word]) -> Word:
    """The one of these words that a text is."""
    for word in words:
        if text == word:
            return word
    raise typer.BadParameter(f"{text!r:.40} is not one of {', '.join(words)}")


def parse_acceptance(text: str) -> Acceptance:
    return parse_word(text, ACCEPTANCE)


ModelOption = Annotated[
    str,
    typer.Option(
        "-m",
        "--model",
        metavar="MODEL",
        autocompletion=complete_model,
        help="Catalogue name, path, or hf:OWNER/REPO/FILE.gguf.",
    ),
]
DRAFT_HELP = "Drafter: none, suffix, lookup, recycle, a MODEL, or auto. Repeat it or separate with commas.  "
DraftOption = Annotated[
    list[str] | None,
    typer.Option(
        "-d", "--draft", metavar="DRAFT", autocompletion=complete_drafter, help=f"{DRAFT_HELP}[default: auto]"
    ),
]
PlannedDraftOption = Annotated[
    list[str] | None,
    typer.Option(
        "-d",
        "--draft",
        metavar="DRAFT",
        autocompletion=complete_drafter,
        help=f"{DRAFT_HELP}[default: the saved plan, else auto]",
    ),
]
DraftTokensOption = Annotated[
    int | None,
    typer.Option(
        "--draft-tokens",
        metavar="N",
        parser=parse_integer,
        help="Tokens drafted each round.  [default: from measured costs]",
    ),
]
DraftShortlistOption = Annotated[
    int | None,
    typer.Option(
        "--draft-shortlist",
        metavar="N|auto|off",
        parser=parse_shortlist,
        autocompletion=complete_words(("auto", "off")),
        help="A draft model proposes N frequent tokens and the text's own; off: any.  [default: 32k where that pays]",
    ),
]
DRAFT_WEIGHTS_HELP = "A draft model's weights: file keeps them, q4_0 rounds wide ones, auto where that saves 15 %."
DraftWeightsOption = Annotated[
    DraftWeights,
    typer.Option(
        "--draft-weights",
        metavar="auto|q4_0|file",
        parser=parse_draft_weights,
        autocompletion=complete_words(DRAFT_WEIGHTS),
        help=DRAFT_WEIGHTS_HELP,
    ),
]
HistoryOption = Annotated[
    str | None,
    typer.Option(
        "--history",
        metavar="NAME",
        autocompletion=complete_history,
        help="Also draft from earlier answers. Keeps the token ids of answers, not prompts, under NAME in"
        " ~/.cache/borrador-history or $BORRADOR_HISTORY.  [default: nothing is kept]",
    ),
]
ThreadsOption = Annotated[
    int | None,
    typer.Option(
        "--threads", metavar="N", parser=parse_integer, help="Threads.  [default: the cores this process may use]"
    ),
]
ContextOption = Annotated[
    int | None,
    typer.Option(
        "--context",
        metavar="N",
        parser=parse_count,
        help="Maximum tokens of prompt and answer together.  [default: the model's limit, at most 4k]",
    ),
]
MaxTokensOption = Annotated[
    int, typer.Option("-n", "--max-tokens", metavar="N", parser=parse_count, help="Maximum tokens to write.")
]
TemperatureOption = Annotated[
    float,
    typer.Option(
        "--temperature",
        "--temp",
        metavar="T",
        parser=parse_number,
        help="Sampling temperature; 0 always takes the most likely token.",
    ),
]
TopKOption = Annotated[
    int,
    typer.Option("--top-k", metavar="K", parser=parse_integer, help="Sample from the K most likely tokens; 0: all."),
]
TopPOption = Annotated[
    float,
    typer.Option(
        "--top-p", metavar="P", parser=parse_number, help="Sample from the most likely tokens that together reach P."
    ),
]
MinPOption = Annotated[
    float,
    typer.Option(
        "--min-p", metavar="P", parser=parse_number, help="Drop tokens less likely than P times the most likely one."
    ),
]
SeedOption = Annotated[
    int | None,
    typer.Option("--seed", metavar="N", parser=parse_integer, help="Equal seeds give equal text.  [default: random]"),
]
CompletionsOption = Annotated[
    int | None,
    typer.Option(
        "--n",
        metavar="N",
        parser=parse_integer,
        help="Write N answers; with --seed S, their seeds are S, S+1, ...",
    ),
]
AcceptanceOption = Annotated[
    Acceptance,
    typer.Option(
        "--acceptance",
        metavar="RULE",
        parser=parse_acceptance,
        autocompletion=complete_words(ACCEPTANCE),
        help="How sampling accepts drafts: seeded, rejection, block, or auto (seeded with a seed, else block).",
    ),
]
LenienceOption = Annotated[
    float,
    typer.Option(
        "--lenience",
        metavar="L",
        parser=parse_number,
        help="Below 1, accept drafts up to 1/L times as often as is correct; this changes answers.",
    ),
]
StopOption = Annotated[
    list[str] | None, typer.Option("--stop", metavar="TEXT", help="End before this text. Repeat it for several.")
]
ProfileOption = Annotated[
    bool,
    typer.Option(
        "--profile/--no-profile",
        help="Save measured costs and what drafters learnt for the next start; no text is saved.",
    ),
]
QuietOption = Annotated[bool, typer.Option("-q", "--quiet", help="No notices and no statistics.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Machine-readable output.")]
