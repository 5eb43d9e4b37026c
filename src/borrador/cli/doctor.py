"""`borrador doctor`: what this machine offers, and what would make the engine faster on it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from borrador.cli import options as opt
from borrador.cli.completion import complete_model
from borrador.cli.doctor_card import readable
from borrador.cli.models import find_model, require_on_disk
from borrador.cli.output import make_console, print_json, print_wrapped, standard_output
from borrador.doctor.rule import Advice
from borrador.errors import BorradorError

_LABEL_WIDTH = 15


def doctor(
    model: Annotated[
        str | None,
        typer.Option(
            "-m",
            "--model",
            metavar="MODEL",
            autocompletion=complete_model,
            help="Load this model too, and time some of its passes.",
        ),
    ] = None,
    json: opt.JsonOption = False,
) -> None:
    """Show what this machine offers, and what would make it faster.

    Ends with exit code 1 if no model can run here, or if MODEL cannot.
    """
    output = standard_output()
    path = None
    if model is not None:
        require_on_disk(model)
        path = find_model(model, quiet=True)

    from borrador.doctor.advice import advise, find_obstacles
    from borrador.doctor.examination import examine

    facts = examine(model, path)
    obstacles, advice = find_obstacles(facts), advise(facts)
    if json:
        found = {"obstacles": list(map(asdict, obstacles)), "advice": list(map(asdict, advice))}
        print_json({"can_run": not obstacles, **found, **facts.as_json()})
    else:
        console = make_console(output)
        for label, text in readable(facts):
            console.print(Text.assemble((f"{label:<{_LABEL_WIDTH}}", "bold"), text))
        _print_advice(console, advice)
    output.flush()
    if obstacles:
        raise BorradorError(obstacles[0].finding, obstacles[0].remedy)


def _print_advice(console: Console, advice: list[Advice]) -> None:
    console.print()
    if not advice:
        console.print("Nothing that this command knows of would make it faster.")
        return
    console.print("What would make it faster", style="bold")
    for number, item in enumerate(advice, 1):
        print_wrapped(console, f"{number}. {_begin_sentence(item.finding)}. {item.remedy}")


def _begin_sentence(finding: str) -> str:
    """With a capital, unless it begins with a name such as a model's."""
    return finding[:1].upper() + finding[1:] if finding.partition(" ")[0].isalpha() else finding
