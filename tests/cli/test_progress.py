from __future__ import annotations

import io

import pytest
from rich.console import Console

from borrador.cli.progress import StepProgress


def play(*, terminal: bool, quiet: bool = False) -> str:
    shown = io.StringIO()
    with StepProgress(Console(file=shown, force_terminal=terminal, width=80), 3, quiet=quiet) as progress:
        progress.say("warm-up")
        for number in range(2):
            progress.step(f"prompt {number}")
    return shown.getvalue()


def test_terminal_sees_every_step_and_what_was_done() -> None:
    shown = play(terminal=True)
    for part in ("warm-up", "prompt 0", "1/3", "prompt 1", "2/3"):
        assert part in shown


@pytest.mark.parametrize(("terminal", "quiet"), [(False, False), (True, True)])
def test_nothing_is_shown_elsewhere_or_where_it_is_unwanted(terminal: bool, quiet: bool) -> None:
    assert "prompt" not in play(terminal=terminal, quiet=quiet)
