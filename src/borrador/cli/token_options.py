"""Options that steer single tokens: penalties, bias, what may be written and what ends an answer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from borrador.cli.options import SAMPLING, StopOption, parse_integer, parse_number
from borrador.errors import UsageError

TypicalPOption = Annotated[
    float,
    typer.Option(
        "--typical-p",
        metavar="P",
        parser=parse_number,
        help="Sample from the most typical tokens that together reach P.",
    ),
]
RepetitionPenaltyOption = Annotated[
    float,
    typer.Option(
        "--repetition-penalty",
        "--repeat-penalty",
        metavar="X",
        parser=parse_number,
        help="Make tokens that have occurred less likely, by factor X; 1 is off.",
    ),
]
PresencePenaltyOption = Annotated[
    float,
    typer.Option(
        "--presence-penalty",
        metavar="X",
        parser=parse_number,
        help="Subtract X from the logits of tokens that have occurred.",
    ),
]
FrequencyPenaltyOption = Annotated[
    float,
    typer.Option(
        "--frequency-penalty", metavar="X", parser=parse_number, help="Subtract X for every time a token has occurred."
    ),
]
PenaltyWindowOption = Annotated[
    int,
    typer.Option(
        "--penalty-window",
        "--repeat-last-n",
        metavar="N",
        parser=parse_integer,
        help="How many of the last tokens penalties look at; -1: all.",
    ),
]
LogitBiasOption = Annotated[
    list[str] | None,
    typer.Option("--logit-bias", metavar="ID=X", help="Add X to a token's logit. Repeat it or separate with commas."),
]
AllowTokenOption = Annotated[
    list[str] | None,
    typer.Option("--allow-token", metavar="ID", help="Write only these tokens. Repeat it or separate with commas."),
]
BanTokenOption = Annotated[
    list[str] | None,
    typer.Option("--ban-token", metavar="ID", help="Never write this token. Repeat it or separate with commas."),
]
StopTokenOption = Annotated[
    list[str] | None,
    typer.Option("--stop-token", metavar="ID", help="End before this token. Repeat it or separate with commas."),
]
MinTokensOption = Annotated[
    int, typer.Option("--min-tokens", metavar="N", parser=parse_integer, help="Minimum tokens to write.")
]
IgnoreEosOption = Annotated[bool, typer.Option("--ignore-eos", help="Go on past the model's end-of-text tokens.")]
LogprobsOption = Annotated[
    int | None,
    typer.Option(
        "--logprobs",
        metavar="N",
        parser=parse_integer,
        help="With --json: log probabilities, also of the N most likely tokens.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class TokenOptions:
    """Which tokens may be written, and which are preferred."""

    logit_bias: LogitBiasOption = None
    allow_token: AllowTokenOption = None
    ban_token: BanTokenOption = None

    def as_params(self) -> dict[str, Any]:
        """Arguments of SamplingParams. Raises UsageError as `token_ids` and `biases` do."""
        return {
            "logit_bias": biases(self.logit_bias),
            "allowed_token_ids": allowed_ids(self.allow_token),
            "banned_token_ids": token_ids("--ban-token", self.ban_token),
        }


@dataclass(frozen=True, kw_only=True)
class EndOptions:
    """What ends an answer, besides its length."""

    stop: StopOption = None
    stop_token: StopTokenOption = None
    min_tokens: MinTokensOption = SAMPLING.min_tokens
    ignore_eos: IgnoreEosOption = SAMPLING.ignore_eos

    def as_params(self) -> dict[str, Any]:
        """Arguments of SamplingParams. Raises UsageError as `token_ids` does."""
        return {
            "stop": tuple(self.stop or ()),
            "stop_token_ids": token_ids("--stop-token", self.stop_token),
            "min_tokens": self.min_tokens,
            "ignore_eos": self.ignore_eos,
        }


def token_ids(option: str, given: Iterable[str] | None) -> tuple[int, ...]:
    """The token ids of a repeated option or comma list.

    Raises:
        UsageError: one is not a whole number.
    """
    return tuple(_id(option, word) for word in _words(given))


def allowed_ids(given: Iterable[str] | None) -> tuple[int, ...] | None:
    """As `token_ids`; None where the option is not given."""
    return None if given is None else token_ids("--allow-token", given)


def biases(given: Iterable[str] | None) -> dict[int, float]:
    """The biases of a repeated option or comma list of ID=X; the last one counts for a token.

    Raises:
        UsageError: one is not written so.
    """
    found: dict[int, float] = {}
    for word in _words(given):
        token, separator, bias = word.partition("=")
        try:
            found[_id("--logit-bias", token)] = float(bias)
        except ValueError:
            separator = ""
        if not separator:
            raise UsageError(f"--logit-bias must be ID=X, got {word!r:.40}", "For example 1234=-2.5.")
    return found


def _words(given: Iterable[str] | None) -> Iterable[str]:
    return (part.strip() for word in given or () for part in word.split(","))


def _id(option: str, word: str) -> int:
    try:
        return int(word)
    except ValueError:
        raise UsageError(f"{option} must be a token id, got {word!r:.40}", "Give a whole number.") from None
