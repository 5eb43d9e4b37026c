from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Annotated

import pytest
import typer

from borrador.cli.option_groups import DraftOptions, MachineOptions, ShapingOptions, engine_config, spread_groups
from borrador.errors import UsageError
from borrador.types import SamplingParams


@dataclass(frozen=True, kw_only=True)
class Colours:
    red: Annotated[int, typer.Option("--red")] = 1
    blue: Annotated[int, typer.Option("--blue")] = 2


@dataclass(frozen=True, kw_only=True)
class BrightColours(Colours):
    blue: Annotated[int, typer.Option("--azure")] = 3


def test_a_group_stands_for_its_fields_in_the_order_of_the_command() -> None:
    @spread_groups
    def paint(*, first: int = 0, colours: Colours, last: int = 9) -> None:
        """Paint."""

    parameters = inspect.signature(paint).parameters
    assert [(name, parameter.default) for name, parameter in parameters.items()] == [
        ("first", 0),
        ("red", 1),
        ("blue", 2),
        ("last", 9),
    ]
    assert paint.__doc__ == "Paint."


def test_a_command_gets_what_was_given_as_its_group() -> None:
    got: list[tuple[int, Colours]] = []

    @spread_groups
    def paint(*, first: int, colours: Colours) -> None:
        got.append((first, colours))

    paint(first=5, red=6, blue=7)
    assert got == [(5, Colours(red=6, blue=7))]


def test_a_group_that_extends_another_replaces_its_options_in_place() -> None:
    @spread_groups
    def paint(*, colours: BrightColours) -> None:
        pass

    red, blue = inspect.signature(paint).parameters.values()
    assert (red.name, blue.name, blue.default) == ("red", "blue", 3)
    assert blue.annotation.__metadata__[0].default == "--azure"


def test_shaping_options_have_the_names_and_defaults_of_the_parameters() -> None:
    assert SamplingParams(**ShapingOptions().as_params()) == SamplingParams()


def test_an_engine_is_set_up_by_its_options() -> None:
    drafts = DraftOptions(draft=["suffix"], draft_tokens=3, history="letters")
    config = engine_config(drafts, MachineOptions(threads=2, context=512, profile=False))
    assert (config.draft, config.draft_tokens, config.history) == (("suffix",), 3, "letters")
    assert (config.threads, config.context, config.profile) == (2, 512, False)


def test_draft_tokens_without_a_drafter_are_refused() -> None:
    with pytest.raises(UsageError, match="--draft-tokens 4 needs a drafter"):
        engine_config(DraftOptions(draft=["none"], draft_tokens=4), MachineOptions())
